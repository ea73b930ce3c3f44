//! The store: it opens transactions and maps calls to them; rules are in the core, statements under `queries/`.

use crate::append;
use crate::claim::Claim;
use crate::config::{READERS_MAX, SqliteOptions};
use crate::connection::Writer;
use crate::error::During;
use crate::moves;
use crate::{migrate, settle, wakeup};
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::moves::Moves;
use mailslot_core::store::{AppendGroup, Appended, Exchange, Exchanged, ExtendRequest, Extended, Recovered};
use mailslot_core::stored::LaneCache;
use mailslot_core::{Capabilities, InboxStore, StoreError, WorkSignal};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Connection as _, Sqlite, SqlitePool, Transaction};
use std::sync::Arc;

/// An inbox in a SQLite file. Clones share it; so do processes that open the same file on the same machine.
///
/// SQLite runs inside the process, so the clock of the machine is the clock of the store, for every process on it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: SqliteOptions,
    pub(crate) writer: Writer,
    pub(crate) readers: SqlitePool,
    /// One connection for handlers that commit with their completion.
    pub(crate) handlers: SqlitePool,
    pub(crate) lanes: LaneCache,
    pub(crate) signal: WorkSignal,
}

impl SqliteStore {
    /// Opens the store at `sqlite://path`, `sqlite:path` or a plain path with the defaults of [`SqliteOptions`].
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(url.parse()?).await
    }

    /// Opens the store.
    ///
    /// # Errors
    /// `Schema`: the file is no database, is another program's, was written by a newer version, drifted, or is older
    /// and may not be migrated. `NotWritable`: file or directory are read-only. `Unavailable`: it cannot be opened.
    pub async fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        migrate::prepare(&options).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .min_connections(0)
            .acquire_timeout(options.busy_timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }));
        let shared = Shared {
            writer: Writer::new(&options),
            readers: readers.clone().connect_lazy_with(options.connect_options()),
            handlers: readers.max_connections(1).connect_lazy_with(options.connect_options()),
            lanes: LaneCache::default(),
            signal: WorkSignal::new(),
            options,
        };
        let shared = Arc::new(shared);
        wakeup::watch(&shared);
        Ok(Self { shared })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.options.clock.now()
    }

    pub(crate) fn wake(&self) {
        self.shared.signal.notify();
    }

    /// A transaction that sees one state of the file and changes nothing.
    pub(crate) async fn read(
        &self,
        operation: &'static str,
    ) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.shared.readers.begin().await.during(operation)
    }
}

#[async_trait]
impl InboxStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::none("sqlite");
        capabilities.durable = true;
        capabilities.multi_process = true;
        capabilities.transactions = true;
        capabilities.reads_latest = true;
        capabilities.wakes_other_processes = true;
        capabilities
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SqliteStore::now(self))
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        AppendGroup::check_all(&groups)?;
        let mut turn = self.shared.writer.turn("append").await?;
        let mut tx = turn.begin("append").await?;
        let appended = append::append(&mut tx, groups, &self.shared.lanes, || SqliteStore::now(self)).await?;
        tx.commit().await.during("append")?;
        self.shared.lanes.remember(appended.lanes);
        if appended.stored {
            self.wake();
        }
        Ok(appended.answers)
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        const OPERATION: &str = "exchange";
        exchange.check()?;
        let Exchange { settlements, lease } = exchange;
        if settlements.is_empty() {
            // Most looks of an idle worker end here, without the write lock.
            let now = SqliteStore::now(self);
            let mut exchanged = Exchanged::nothing(now);
            let Some(request) = &lease else { return Ok(exchanged) };
            let claim = Claim::new(request, now);
            let mut tx = self.read(OPERATION).await?;
            let (found, held_back) = claim.finds_work(&mut tx).await?;
            if !found {
                exchanged.held_back = held_back;
                exchanged.next_due = claim.next_due(&mut tx).await?;
                return Ok(exchanged);
            }
        }
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let now = SqliteStore::now(self);
        let mut moves = Moves::at(now);
        let mut exchanged = Exchanged::nothing(now);
        exchanged.settled = settle::settle(&mut tx, settlements, &mut moves, OPERATION).await?;
        let woke = moves.woke();
        if let Some(request) = &lease {
            Claim::new(request, now).run(&mut tx, &mut moves, &mut exchanged).await?;
        }
        moves::finish(&mut moves, &mut tx, OPERATION).await?;
        tx.commit().await.during(OPERATION)?;
        if woke {
            self.wake();
        }
        Ok(exchanged)
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        request.check()?;
        if request.leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut turn = self.shared.writer.turn("extend").await?;
        let mut tx = turn.begin("extend").await?;
        let extended = settle::extend(&mut tx, &request, SqliteStore::now(self)).await?;
        tx.commit().await.during("extend")?;
        Ok(extended)
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        let mut tx = self.read(settle::RECOVER).await?;
        if settle::find_expired(&mut tx, limit, SqliteStore::now(self)).await?.is_empty() {
            return Ok(Recovered::default());
        }
        drop(tx);
        let mut turn = self.shared.writer.turn(settle::RECOVER).await?;
        let mut tx = turn.begin(settle::RECOVER).await?;
        let now = SqliteStore::now(self);
        let leases = settle::find_expired(&mut tx, limit, now).await?;
        let mut moves = Moves::at(now);
        let recovered = settle::recover(&mut tx, leases, &mut moves).await?;
        moves::finish(&mut moves, &mut tx, settle::RECOVER).await?;
        tx.commit().await.during(settle::RECOVER)?;
        self.wake();
        Ok(recovered)
    }

    fn work_signal(&self) -> &WorkSignal {
        &self.shared.signal
    }
}
