//! The memory store: the model that every other store is compared with.
//!
//! One lock around plain maps, so each rule can be read in one place. It forgets everything with its process; use it
//! for tests and demonstrations.

mod accept;
mod check;
mod lease;
mod ledger;
mod operate;
mod redrive;
mod table;

use crate::capability::Capabilities;
use crate::clock::{Clock, SystemClock};
use crate::delivered::DeliveryIdentity;
use crate::error::StoreError;
use crate::id::MessageId;
use crate::name::EndpointName;
use crate::store::{
    AppendGroup, Appended, Change, Changed, Claim, Claimed, Concluded, Conclusion, Count, Exchange,
    Exchanged, ExtendRequest, Extended, Filter, HandoffResult, InboxStore, LeaseRecord, LedgerStore, Lookup,
    MessageDetail, MessageRecord, OperatorStore, Page, PageRequest, Question, Recovered, Redrive,
    RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord, Violation, WorkSignal,
};
use crate::stored::{later, waiting_since};
use async_trait::async_trait;
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use table::Table;
use uuid::Uuid;

/// A store in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
    signal: WorkSignal,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store on another clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let shared = Shared { clock, table: Mutex::default(), signal: WorkSignal::new() };
        Self { shared: Arc::new(shared) }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    // A panic cannot leave the table half-changed in a way that the checks would miss, so poison is ignored.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.shared.signal.notify();
    }
}

#[async_trait]
impl InboxStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { reads_latest: true, ..Capabilities::none("memory") }
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(MemoryStore::now(self))
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        AppendGroup::check_all(&groups)?;
        let now = MemoryStore::now(self);
        let answers = self.table().append(groups, now);
        self.wake();
        Ok(answers)
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        exchange.check()?;
        let now = MemoryStore::now(self);
        let (exchanged, wake) = self.table().exchange(exchange, now);
        if wake {
            self.wake();
        }
        Ok(exchanged)
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        request.check()?;
        let now = MemoryStore::now(self);
        Ok(self.table().extend(&request, now))
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        let now = MemoryStore::now(self);
        let recovered = self.table().recover(limit, now);
        if recovered.leases > 0 {
            self.wake();
        }
        Ok(recovered)
    }

    fn work_signal(&self) -> &WorkSignal {
        &self.shared.signal
    }
}

#[async_trait]
impl OperatorStore for MemoryStore {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        page.check()?;
        Ok(self.table().query(filter, page))
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        Ok(self.table().get(id))
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        Ok(self.table().counts())
    }

    async fn oldest_due(&self, endpoint: &EndpointName) -> Result<Option<Duration>, StoreError> {
        Ok(waiting_since(self.table().oldest_due(endpoint), MemoryStore::now(self)))
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        let now = MemoryStore::now(self);
        let changed = self.table().change(change, filter, limit, now);
        self.wake();
        Ok(changed)
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        let now = MemoryStore::now(self);
        let settled = self.table().settle_handoff(id, result, now);
        self.wake();
        Ok(settled)
    }

    async fn keep_handoff(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError> {
        let until = later(MemoryStore::now(self), keep_for);
        Ok(self.table().keep_handoff(id, result, until))
    }

    async fn apply_kept_handoffs(&self, limit: usize) -> Result<u64, StoreError> {
        let now = MemoryStore::now(self);
        let settled = self.table().apply_kept_handoffs(limit, now);
        if settled > 0 {
            self.wake();
        }
        Ok(settled)
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        Ok(self.table().sessions(blocked_only, limit))
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        Ok(self.table().leases(limit))
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let now = MemoryStore::now(self);
        Ok(self.table().retain(endpoint, policy, limit, now))
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        spec.check()?;
        let now = MemoryStore::now(self);
        Ok(self.table().create_redrive(spec, now))
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        Ok(self.table().redrives())
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        let now = MemoryStore::now(self);
        Ok(self.table().act_on_redrive(id, action, now))
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        let now = MemoryStore::now(self);
        let moved = self.table().step_redrives(now);
        if !moved.is_empty() {
            self.wake();
        }
        Ok(moved)
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        Ok(SchemaInfo { backend: "memory", found: 1, wanted: 1 })
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        Ok(self.table().check())
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        // Nothing that could break here is repairable.
        Ok(Vec::new())
    }
}

#[async_trait]
impl LedgerStore for MemoryStore {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        Question::check_all(questions)?;
        let (now, table) = (MemoryStore::now(self), self.table());
        Ok(questions.iter().map(|question| table.look_up(question, now)).collect())
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        Conclusion::check_all(&conclusions)?;
        let now = MemoryStore::now(self);
        let mut table = self.table();
        let concluded = conclusions.into_iter().map(|conclusion| table.conclude(conclusion, now)).collect();
        drop(table);
        self.wake();
        Ok(concluded)
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        claim.check()?;
        Ok(self.table().claim_delivery(&claim, MemoryStore::now(self)))
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        self.table().give_up_delivery(identity, owner);
        Ok(())
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        Ok(self.table().purge_deliveries(endpoint, retention, limit, MemoryStore::now(self)))
    }
}
