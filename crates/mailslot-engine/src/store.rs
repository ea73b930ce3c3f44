//! One name for what the engine needs of a store, and a store that is any of them.

use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::store::{
    AppendGroup, Appended, Change, Changed, Count, Exchange, Exchanged, ExtendRequest, Extended, Filter,
    HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page, PageRequest, Recovered, Redrive,
    RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord, Violation,
};
use mailslot_core::{
    Capabilities, EndpointName, InboxStore, MessageId, OperatorStore, StoreError, WorkSignal,
};
use std::fmt;
use std::sync::Arc;

/// A store that can do all that the engine needs.
pub trait Store: InboxStore + OperatorStore {}

impl<S: InboxStore + OperatorStore> Store for S {}

/// A store whose kind is known at run time only, such as one that a URL named. Clones share it.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn Store>);

impl AnyStore {
    /// Forgets the kind of `store`.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyStore({})", self.0.capabilities().backend)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InboxStore for AnyStore {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.0.now().await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        self.0.append(groups).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        self.0.exchange(exchange).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        self.0.extend(request).await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.0.recover(limit).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.0.work_signal()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl OperatorStore for AnyStore {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        self.0.query(filter, page).await
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        self.0.get(id).await
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        self.0.counts().await
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        self.0.change(change, filter, limit).await
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        self.0.settle_handoff(id, result).await
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        self.0.sessions(blocked_only, limit).await
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        self.0.leases(limit).await
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.0.retain(endpoint, policy, limit).await
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        self.0.create_redrive(spec).await
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.0.redrives().await
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        self.0.act_on_redrive(id, action).await
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.0.step_redrives().await
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        self.0.schema().await
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        self.0.check().await
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        self.0.repair().await
    }
}
