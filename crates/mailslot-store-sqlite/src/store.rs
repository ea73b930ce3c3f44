//! The store: it opens transactions and maps calls to them; rules are in the core, statements under `queries/`.

use crate::append;
use crate::claim::Claim;
use crate::config::{READERS_MAX, SqliteOptions};
use crate::connection::Writer;
use crate::error::During;
use crate::moves::Moves;
use crate::settle;
use crate::{check, migrate, operate, redrive, retain, wakeup};
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::store::{
    AppendGroup, Appended, Change, Changed, Count, Exchange, Exchanged, ExtendRequest, Extended, Filter,
    HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page, PageRequest, Recovered, Redrive,
    RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord, Violation,
};
use mailslot_core::{
    Capabilities, Contract, EndpointName, InboxStore, MessageId, OperatorStore, StoreError, WorkSignal,
};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Connection as _, Sqlite, SqlitePool, Transaction};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
        capabilities.wakes_other_processes = true;
        capabilities
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SqliteStore::now(self))
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        append::check(&groups)?;
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
            let mut exchanged = nothing(now);
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
        let mut exchanged = nothing(now);
        exchanged.settled = settle::settle(&mut tx, settlements, &mut moves, OPERATION).await?;
        let woke = moves.woke();
        if let Some(request) = &lease {
            Claim::new(request, now).run(&mut tx, &mut moves, &mut exchanged).await?;
        }
        moves.finish(&mut tx, OPERATION).await?;
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
        moves.finish(&mut tx, settle::RECOVER).await?;
        tx.commit().await.during(settle::RECOVER)?;
        self.wake();
        Ok(recovered)
    }

    fn work_signal(&self) -> &WorkSignal {
        &self.shared.signal
    }
}

fn nothing(now: Timestamp) -> Exchanged {
    Exchanged {
        settled: Vec::new(),
        leased: Vec::new(),
        refused: Vec::new(),
        held_back: 0,
        now,
        until: None,
        next_due: None,
    }
}

#[async_trait]
impl OperatorStore for SqliteStore {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        page.check()?;
        operate::query(&mut *self.read("query").await?, filter, page).await
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        operate::get(&mut *self.read("get").await?, id).await
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        operate::counts(&mut *self.read("counts").await?).await
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        let mut turn = self.shared.writer.turn("change").await?;
        let mut tx = turn.begin("change").await?;
        let mut moves = Moves::at(SqliteStore::now(self));
        let changed = crate::change::change(&mut tx, change, filter, limit, &mut moves).await?;
        moves.finish(&mut tx, "change").await?;
        tx.commit().await.during("change")?;
        if moves.woke() {
            self.wake();
        }
        Ok(changed)
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        const OPERATION: &str = "settle_handoff";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let mut moves = Moves::at(SqliteStore::now(self));
        let settled = crate::change::settle_handoff(&mut tx, id, result, &mut moves).await?;
        moves.finish(&mut tx, OPERATION).await?;
        tx.commit().await.during(OPERATION)?;
        if moves.woke() {
            self.wake();
        }
        Ok(settled)
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        operate::sessions(&mut *self.read("sessions").await?, blocked_only, limit).await
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        operate::leases(&mut *self.read("leases").await?, limit).await
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        const OPERATION: &str = "retain";
        let now = SqliteStore::now(self);
        let mut tx = self.read(OPERATION).await?;
        if retain::find(&mut tx, endpoint, policy, 1, now).await?.is_empty() {
            return Ok(0);
        }
        drop(tx);
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let seqs = retain::find(&mut tx, endpoint, policy, limit, now).await?;
        let mut moves = Moves::at(now);
        crate::change::delete(&mut tx, &seqs, &mut moves, OPERATION).await?;
        moves.finish(&mut tx, OPERATION).await?;
        tx.commit().await.during(OPERATION)?;
        if moves.woke() {
            self.wake();
        }
        Ok(seqs.len() as u64)
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        spec.check()?;
        let mut turn = self.shared.writer.turn("create_redrive").await?;
        let mut tx = turn.begin("create_redrive").await?;
        let redrive = redrive::create(&mut tx, spec, SqliteStore::now(self)).await?;
        tx.commit().await.during("create_redrive")?;
        Ok(redrive)
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        redrive::list(&mut *self.read("redrives").await?).await
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        const OPERATION: &str = "act_on_redrive";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let redrive = redrive::act(&mut tx, id, action, SqliteStore::now(self)).await?;
        tx.commit().await.during(OPERATION)?;
        Ok(redrive)
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        if !redrive::is_any_running(&mut *self.read(redrive::STEP).await?).await? {
            return Ok(Vec::new());
        }
        let mut turn = self.shared.writer.turn(redrive::STEP).await?;
        let mut tx = turn.begin(redrive::STEP).await?;
        let now = SqliteStore::now(self);
        let mut moves = Moves::at(now);
        let stepped = redrive::step(&mut tx, now, &mut moves).await?;
        moves.finish(&mut tx, redrive::STEP).await?;
        tx.commit().await.during(redrive::STEP)?;
        if moves.woke() {
            self.wake();
        }
        Ok(stepped)
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        let found = migrate::version(&mut *self.read("schema").await?).await?;
        Ok(SchemaInfo { backend: "sqlite", found, wanted: migrate::WANTED })
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        check::check(&mut *self.read("check").await?).await
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        let mut turn = self.shared.writer.turn("repair").await?;
        let mut tx = turn.begin("repair").await?;
        let mut moves = Moves::at(SqliteStore::now(self));
        let repaired = check::repair(&mut tx, &mut moves).await?;
        tx.commit().await.during("repair")?;
        if moves.woke() {
            self.wake();
        }
        Ok(repaired)
    }
}

pub(crate) type LaneKey = (EndpointName, Contract);

/// The numbers of lanes, which never change once they are committed.
#[derive(Debug, Default)]
pub(crate) struct LaneCache(Mutex<HashMap<LaneKey, i64>>);

impl LaneCache {
    pub(crate) fn find<'l>(
        &self,
        wanted: impl Iterator<Item = (&'l EndpointName, &'l Contract)>,
    ) -> HashMap<LaneKey, i64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = wanted.map(|(endpoint, contract)| (endpoint.clone(), contract.clone()));
        keys.filter_map(|key| known.get(&key).map(|id| (key, *id))).collect()
    }

    pub(crate) fn remember(&self, lanes: HashMap<LaneKey, i64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lanes);
    }
}
