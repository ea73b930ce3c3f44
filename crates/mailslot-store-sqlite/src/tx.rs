//! The inbox in the application's own transactions: accepts that commit with its changes, and handlers whose changes
//! commit with their completion.

use crate::append;
use crate::connection::{BEGIN_IMMEDIATE, Turn};
use crate::delivery::record_once;
use crate::error::During;
use crate::moves;
use crate::settle::settle;
use crate::store::SqliteStore;
use async_trait::async_trait;
use mailslot_core::handler::{Context, EnlistedTransaction, Extensions, FromMessageParts, HandlerError};
use mailslot_core::moves::Moves;
use mailslot_core::store::{AppendGroup, Appended, Concluded, Settled};
use mailslot_core::stored::LaneCache;
use mailslot_core::{AppendIn, DeliveryIdentity, FieldError, Settlement, StoreError, StoreErrorKind};
use sqlx::{Connection as _, Sqlite, SqliteConnection, Transaction};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

impl SqliteStore {
    /// Accepts messages in the caller's own transaction: they are there if and when it commits, and the receipts
    /// count from then. A call that fails leaves nothing of itself in the transaction.
    ///
    /// `connection` is one that the application opened on the same file, with a transaction that sqlx began. Its
    /// first statement should be a write, or it should begin with `BEGIN IMMEDIATE`: SQLite cannot turn a
    /// transaction that has read into a writing one once another writer committed. Workers of every process notice the
    /// commit within a moment, by themselves.
    ///
    /// # Errors
    /// `Schema`: the inbox's tables are not in that database. `Busy`: another writer holds the file for longer than
    /// the connection waits. Otherwise as `append`.
    pub async fn append_in(
        &self,
        connection: &mut SqliteConnection,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        AppendGroup::check_all(&groups)?;
        // Within a transaction this is a savepoint.
        let mut savepoint = connection.begin().await.during("append_in")?;
        // No remembered lanes: the database may be another file, and what is new here may still be rolled back.
        let appended = append::append(&mut savepoint, groups, &LaneCache::default(), || self.now()).await?;
        savepoint.commit().await.during("append_in")?;
        Ok(appended.answers)
    }
}

/// So that an inbox on this store has `accept_in`.
#[async_trait]
impl AppendIn<SqliteConnection> for SqliteStore {
    async fn append_in(
        &self,
        connection: &mut SqliteConnection,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        SqliteStore::append_in(self, connection, groups).await
    }
}

/// The handler's transaction: an extractor. What the handler writes through it commits together with the message's
/// completion, so for these writes the handler takes effect once. With any other verdict, and when the lease is lost,
/// it is rolled back.
///
/// It holds SQLite's write lock from before the handler starts until its message is settled: such handlers run one at
/// a time, and everything else that writes waits, heartbeats included. Do slow work in another handler. Accept
/// follow-up messages by [`SqliteStore::append_in`] on it; an accept by other means would wait for this very
/// transaction.
///
/// Register the store itself as state: `.state(store.clone())`.
#[derive(Debug)]
pub struct SqliteTx {
    slot: OwnedMutexGuard<Option<Open>>,
}

/// An open transaction with the turn that keeps other writers of this process away.
#[derive(Debug)]
struct Open {
    // Declared first, so that it is rolled back before the turn ends.
    transaction: Transaction<'static, Sqlite>,
    _turn: Turn,
}

impl SqliteTx {
    fn open(&self) -> &Open {
        self.slot.as_ref().expect("the transaction is taken only after its handle is gone")
    }
}

impl Deref for SqliteTx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.open().transaction
    }
}

impl DerefMut for SqliteTx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.slot.as_mut().expect("the transaction is taken only after its handle is gone").transaction
    }
}

impl FromMessageParts for SqliteTx {
    async fn from_message_parts(context: &Context) -> Result<Self, HandlerError> {
        let store = context.extension::<SqliteStore>();
        let store =
            store.ok_or_else(|| HandlerError::permanent("no `SqliteStore` is registered as state"))?;
        let open = begin(&store).await.map_err(HandlerError::retryable)?;
        let slot = Arc::new(Mutex::new(Some(open)));
        let guard = Arc::clone(&slot).try_lock_owned().expect("nobody else knows the slot yet");
        context.enlist(Arc::new(Enlisted { store, slot }))?;
        Ok(Self { slot: guard })
    }

    fn check(extensions: &Extensions) -> Result<(), FieldError> {
        if extensions.contains::<SqliteStore>() {
            return Ok(());
        }
        let problem = "has no `SqliteStore`, which a handler needs for its `SqliteTx`";
        Err(FieldError::new(
            "state",
            problem,
            "add `.state(store.clone())` with the inbox's store to the builder",
        ))
    }
}

async fn begin(store: &SqliteStore) -> Result<Open, StoreError> {
    const OPERATION: &str = "begin_handler";
    let turn = store.shared.writer.turn(OPERATION).await?;
    let transaction = store.shared.handlers.begin_with(BEGIN_IMMEDIATE).await.during(OPERATION)?;
    Ok(Open { transaction, _turn: turn })
}

#[derive(Debug)]
struct Enlisted {
    store: SqliteStore,
    slot: Arc<Mutex<Option<Open>>>,
}

impl Enlisted {
    fn take(&self, operation: &'static str) -> Result<Open, StoreError> {
        let mut slot = self.slot.try_lock().map_err(|_| {
            let detail = "the handler returned and its `SqliteTx` is still held; do not move it into a task";
            StoreError::new(StoreErrorKind::Invalid, operation, detail)
        })?;
        slot.take().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Invalid, operation, "the handler's transaction is over already")
        })
    }
}

impl Enlisted {
    /// Takes a transaction that is to be committed.
    async fn take_open(&self, operation: &'static str) -> Result<Open, StoreError> {
        let mut open = self.take(operation)?;
        if is_open(&mut open.transaction).await {
            return Ok(open);
        }
        open.transaction.rollback().await.during(operation)?;
        let detail = "SQLite rolled the handler's transaction back after an error in it";
        Err(StoreError::new(StoreErrorKind::Unavailable, operation, detail))
    }
}

#[async_trait]
impl EnlistedTransaction for Enlisted {
    async fn settle_and_commit(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        const OPERATION: &str = "settle_and_commit";
        let Open { mut transaction, _turn } = self.take_open(OPERATION).await?;
        let mut moves = Moves::at(self.store.now());
        let settled = settle(&mut transaction, vec![settlement], &mut moves, OPERATION).await?;
        let settled = settled.first().copied().unwrap_or(Settled::LeaseLost);
        if settled == Settled::LeaseLost {
            transaction.rollback().await.during(OPERATION)?;
            return Ok(settled);
        }
        moves::finish(&mut moves, &mut transaction, OPERATION).await?;
        transaction.commit().await.during(OPERATION)?;
        // The handler may have accepted others in it.
        self.store.wake();
        Ok(settled)
    }

    async fn record_and_commit(&self, identity: Option<&DeliveryIdentity>) -> Result<Concluded, StoreError> {
        const OPERATION: &str = "record_and_commit";
        let Open { mut transaction, _turn } = self.take_open(OPERATION).await?;
        let concluded = match identity {
            Some(one) => record_once(&mut transaction, one, self.store.now(), OPERATION).await?,
            None => Concluded::Recorded,
        };
        if concluded != Concluded::Recorded {
            transaction.rollback().await.during(OPERATION)?;
            return Ok(concluded);
        }
        transaction.commit().await.during(OPERATION)?;
        // The handler may have accepted others in it.
        self.store.wake();
        Ok(concluded)
    }

    async fn roll_back(&self) -> Result<(), StoreError> {
        const OPERATION: &str = "roll_back";
        let Open { mut transaction, _turn } = self.take(OPERATION)?;
        is_open(&mut transaction).await;
        transaction.rollback().await.during(OPERATION)
    }
}

/// Whether the transaction that the driver counts is still there: after some errors SQLite rolls back by itself, and
/// what follows would commit statement by statement. SQLite refuses to begin within a transaction, which tells; if it
/// did begin, there is again one to roll back, as the driver expects.
async fn is_open(db: &mut SqliteConnection) -> bool {
    sqlx::query(crate::queries::SCHEMA_PROBE).execute(db).await.is_err()
}
