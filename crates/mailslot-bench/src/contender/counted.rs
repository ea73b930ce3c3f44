//! A store that counts its write transactions.

use async_trait::async_trait;
use jiff::Timestamp;
use mailslot::AnyStore;
use mailslot::store::{
    AppendGroup, Appended, Change, Changed, Count, Exchange, Exchanged, ExtendRequest, Extended, Filter,
    HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page, PageRequest, Recovered, Redrive,
    RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord, Violation,
};
use mailslot::{Capabilities, EndpointName, InboxStore, MessageId, OperatorStore, StoreError, WorkSignal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts around another store. Clones share the counter.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    inner: AnyStore,
    commits: Arc<AtomicU64>,
}

impl Counted {
    pub(crate) fn new(inner: AnyStore) -> Self {
        Self { inner, commits: Arc::default() }
    }

    /// Appends and exchanges that changed something.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InboxStore for Counted {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        self.count();
        self.inner.append(groups).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        let settles = !exchange.settlements.is_empty();
        let exchanged = self.inner.exchange(exchange).await?;
        if settles || !exchanged.leased.is_empty() {
            self.count();
        }
        Ok(exchanged)
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        self.inner.extend(request).await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.inner.recover(limit).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.inner.work_signal()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl OperatorStore for Counted {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        self.inner.query(filter, page).await
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        self.inner.get(id).await
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        self.inner.counts().await
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        self.inner.change(change, filter, limit).await
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        self.inner.settle_handoff(id, result).await
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        self.inner.sessions(blocked_only, limit).await
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        self.inner.leases(limit).await
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.inner.retain(endpoint, policy, limit).await
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        self.inner.create_redrive(spec).await
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.inner.redrives().await
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        self.inner.act_on_redrive(id, action).await
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.inner.step_redrives().await
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        self.inner.schema().await
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        self.inner.check().await
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        self.inner.repair().await
    }
}
