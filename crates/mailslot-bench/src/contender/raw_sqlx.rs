//! The raw reference through sqlx, accepts only: the same statements, one by one in one transaction, on one connection.
//!
//! The difference to the other raw reference is what sqlx costs: each statement goes to the connection's own thread and
//! back.

use super::{RawMessage, Setup, open_tables, raw};
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use mailslot_load::Contender;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

type Accept = (Vec<RawMessage>, oneshot::Sender<anyhow::Result<()>>);

/// A handle on the writing task, which ends with it.
pub(super) struct RawSqlx {
    accepts: mpsc::Sender<Accept>,
    commits: Arc<AtomicU64>,
}

impl RawSqlx {
    pub(super) async fn open(setup: &Setup) -> anyhow::Result<Self> {
        let path = setup.place.file()?;
        drop(open_tables(path, setup.durability)?);
        let synchronous = match setup.durability {
            crate::options::Durability::Normal => SqliteSynchronous::Normal,
            _ => SqliteSynchronous::Full,
        };
        let db = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .pragma("wal_autocheckpoint", "4096")
            .pragma("cache_size", "-65536")
            .disable_statement_logging()
            .connect()
            .await?;
        let (accepts, received) = mpsc::channel(raw::QUEUE);
        let commits = Arc::<AtomicU64>::default();
        tokio::spawn(write_all(db, received, commits.clone()));
        Ok(Self { accepts, commits })
    }

    async fn store(&self, messages: Vec<RawMessage>) -> anyhow::Result<()> {
        let (answer, answered) = oneshot::channel();
        self.accepts.send((messages, answer)).await.map_err(|_| anyhow!("the raw writer stopped"))?;
        answered.await.context("the raw writer stopped")?
    }
}

#[async_trait]
impl Contender for RawSqlx {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        self.store(vec![RawMessage::new(keyed)]).await
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        self.store((0..messages).map(|_| RawMessage::new(true)).collect()).await
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

async fn write_all(mut db: SqliteConnection, mut accepts: mpsc::Receiver<Accept>, commits: Arc<AtomicU64>) {
    let mut seq = 0;
    while let Some((mut messages, answer)) = accepts.recv().await {
        let mut answers = vec![answer];
        while messages.len() < raw::COALESCE_MAX {
            let Ok((more, answer)) = accepts.try_recv() else { break };
            messages.extend(more);
            answers.push(answer);
        }
        let stored = write(&mut db, &messages, &mut seq).await;
        commits.fetch_add(1, Ordering::Relaxed);
        for answer in answers {
            let stored = stored.as_ref().copied().map_err(|error| anyhow!("failed to store: {error}"));
            // A caller that stopped waiting needs no answer.
            let _ = answer.send(stored);
        }
    }
}

async fn write(db: &mut SqliteConnection, messages: &[RawMessage], seq: &mut i64) -> sqlx::Result<()> {
    let now = jiff::Timestamp::now().as_microsecond();
    let mut tx = db.begin_with("BEGIN IMMEDIATE").await?;
    for RawMessage { id, ledger, payload } in messages {
        *seq += 1;
        if let Some((key, fingerprint)) = ledger {
            let insert = sqlx::query(
                "INSERT INTO ledger (key, seq, fingerprint, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            );
            let insert = insert.bind(&key[..]).bind(*seq).bind(&fingerprint[..]).bind(now);
            if insert.execute(&mut *tx).await?.rows_affected() == 0 {
                continue;
            }
        }
        let insert = sqlx::query(
            "INSERT INTO message (seq, id, endpoint, contract, version, headers, accepted_at, payload)
             VALUES (?1, ?2, 1, 'bench.work', 1, '{}', ?3, ?4)",
        );
        insert.bind(*seq).bind(&id.as_bytes()[..]).bind(now).bind(payload).execute(&mut *tx).await?;
        let insert = sqlx::query("INSERT INTO ready (endpoint, due_at, seq, attempt) VALUES (1, ?1, ?2, 0)");
        insert.bind(now).bind(*seq).execute(&mut *tx).await?;
    }
    tx.commit().await
}
