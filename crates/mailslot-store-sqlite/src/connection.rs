//! The writer: one connection, one turn at a time. SQLite has a single write lock, so threads of one process queue
//! here, in order, instead of trying against each other in SQLite's busy handler, which sleeps and is not fair.

use crate::config::SqliteOptions;
use crate::error::During;
use mailslot_core::{StoreError, StoreErrorKind};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, Transaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Takes the write lock at once: a transaction that reads first could find its snapshot too old to write.
pub(crate) const BEGIN_IMMEDIATE: &str = "BEGIN IMMEDIATE";

/// The writing connection and the queue for it.
#[derive(Debug)]
pub(crate) struct Writer {
    options: SqliteConnectOptions,
    timeout: Duration,
    /// Empty before its first use and after it broke.
    connection: Arc<Mutex<Option<SqliteConnection>>>,
    broken: Arc<AtomicBool>,
}

/// The right of this process to write, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    options: SqliteConnectOptions,
    connection: OwnedMutexGuard<Option<SqliteConnection>>,
    broken: Arc<AtomicBool>,
}

impl Writer {
    pub(crate) fn new(options: &SqliteOptions) -> Self {
        Self {
            options: options.connect_options(),
            timeout: options.busy_timeout,
            connection: Arc::new(Mutex::new(None)),
            broken: Arc::default(),
        }
    }

    /// Waits for the turn, first come first served.
    ///
    /// # Errors
    /// It did not come within the busy timeout.
    pub(crate) async fn turn(&self, operation: &'static str) -> Result<Turn, StoreError> {
        let waiting = tokio::time::timeout(self.timeout, Arc::clone(&self.connection).lock_owned());
        let connection = waiting.await.map_err(|_| {
            StoreError::new(
                StoreErrorKind::Busy,
                operation,
                "a transaction of this process holds the file for too long; \
                 inside a handler that takes a `SqliteTx`, accept with `append_in` on it",
            )
        })?;
        Ok(Turn { options: self.options.clone(), connection, broken: Arc::clone(&self.broken) })
    }
}

impl Turn {
    /// The connection, opened if need be.
    pub(crate) async fn connection(
        &mut self,
        operation: &'static str,
    ) -> Result<&mut SqliteConnection, StoreError> {
        let broken = self.broken.swap(false, Ordering::Relaxed);
        if let Some(mut connection) = self.connection.take()
            && !broken
            && is_idle(&mut connection).await
        {
            return Ok(self.connection.insert(connection));
        }
        let connection = self.options.connect().await.during(operation)?;
        Ok(self.connection.insert(connection))
    }

    /// Begins a transaction that has the write lock. It is rolled back when it is dropped, also by a caller that
    /// stops waiting.
    pub(crate) async fn begin(
        &mut self,
        operation: &'static str,
    ) -> Result<Transaction<'_, Sqlite>, StoreError> {
        let broken = Arc::clone(&self.broken);
        let begun = self.connection(operation).await?.begin_with(BEGIN_IMMEDIATE).await;
        if let Err(sqlx::Error::WorkerCrashed) = begun {
            broken.store(true, Ordering::Relaxed);
        }
        begun.during(operation)
    }
}

/// Whether a connection can begin anew. After an error that made SQLite roll back by itself, such as a full disk, the
/// driver still counts the transaction; and one whose thread died answers nothing. Both are replaced: what they were
/// doing was rolled back.
async fn is_idle(connection: &mut SqliteConnection) -> bool {
    // The answer to a ping comes after a rollback that a dropped transaction left in the queue.
    !connection.is_in_transaction() || (connection.ping().await.is_ok() && !connection.is_in_transaction())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Synchronous;

    async fn pragma(options: &SqliteOptions, pragma: &'static str) -> i64 {
        let mut turn = Writer::new(options).turn("test").await.unwrap();
        let db = turn.connection("test").await.unwrap();
        sqlx::query_scalar(pragma).fetch_one(db).await.unwrap()
    }

    #[tokio::test]
    async fn a_commit_waits_for_the_disk_unless_asked_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path().join("inbox.db"));
        // 2 is FULL and 1 is NORMAL: sqlite.org, `pragma.html`.
        assert_eq!(pragma(&options, "PRAGMA synchronous").await, 2);
        let normal = options.synchronous(Synchronous::Normal);
        assert_eq!(pragma(&normal, "PRAGMA synchronous").await, 1);
    }

    #[tokio::test]
    async fn a_connection_that_sqlite_rolled_back_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let writer = Writer::new(&SqliteOptions::new(directory.path().join("inbox.db")));
        let mut turn = writer.turn("test").await.unwrap();
        let mut tx = turn.begin("test").await.unwrap();
        sqlx::raw_sql("CREATE TABLE t (a UNIQUE); COMMIT; BEGIN; INSERT INTO t VALUES (1)")
            .execute(&mut *tx)
            .await
            .unwrap();
        sqlx::raw_sql("INSERT OR ROLLBACK INTO t VALUES (1)").execute(&mut *tx).await.unwrap_err();
        drop(tx);
        let tx = turn.begin("test").await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_turn_that_does_not_come_is_busy() {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path().join("inbox.db"));
        let writer = Writer::new(&options.busy_timeout(Duration::from_millis(1)));
        let turn = writer.turn("test").await.unwrap();
        assert_eq!(writer.turn("test").await.unwrap_err().kind(), StoreErrorKind::Busy);
        drop(turn);
        writer.turn("test").await.unwrap();
    }
}
