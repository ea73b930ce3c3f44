//! A store around a store: every call goes through one place.

use crate::store::TestStore;
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::store::{
    AppendGroup, Appended, Change, Changed, Claim, Claimed, Concluded, Conclusion, Count, Exchange,
    Exchanged, ExtendRequest, Extended, Filter, HandoffResult, LeaseRecord, Lookup, MessageDetail,
    MessageRecord, Page, PageRequest, Question, Recovered, Redrive, RedriveAction, RedriveId, RedriveSpec,
    RetentionPolicy, SchemaInfo, SessionRecord, Violation,
};
use mailslot_core::{
    Capabilities, DeliveryIdentity, EndpointName, InboxStore, LedgerStore, MessageId, OperatorStore,
    StoreError, WorkSignal,
};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What a wrapper does around each call.
pub trait Around: Send + Sync + 'static {
    /// Makes the call, or does not, or makes something else of its answer.
    fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// A store around another one. What it does is decided by `A`.
pub struct Wrapped<S: ?Sized, A> {
    inner: Arc<S>,
    around: A,
}

impl<S: ?Sized, A: fmt::Debug> fmt::Debug for Wrapped<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped").field("around", &self.around).finish_non_exhaustive()
    }
}

impl<S: TestStore + ?Sized, A: Around> Wrapped<S, A> {
    /// Wraps `inner`.
    pub fn new(inner: Arc<S>, around: A) -> Self {
        Self { inner, around }
    }

    /// The store inside.
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    /// What stands around it.
    pub fn wrapping(&self) -> &A {
        &self.around
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: TestStore + ?Sized, A: Around> InboxStore for Wrapped<S, A> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.around.around("now", self.inner.now()).await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        self.around.around("append", self.inner.append(groups)).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        self.around.around("exchange", self.inner.exchange(exchange)).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        self.around.around("extend", self.inner.extend(request)).await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.around.around("recover", self.inner.recover(limit)).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.inner.work_signal()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: TestStore + ?Sized, A: Around> LedgerStore for Wrapped<S, A> {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        self.around.around("look_up", self.inner.look_up(questions)).await
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        self.around.around("conclude", self.inner.conclude(conclusions)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.around.around("claim", self.inner.claim(claim)).await
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        self.around.around("give_up", self.inner.give_up(identity, owner)).await
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.around.around("purge", self.inner.purge(endpoint, retention, limit)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: TestStore + ?Sized, A: Around> OperatorStore for Wrapped<S, A> {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        self.around.around("query", self.inner.query(filter, page)).await
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        self.around.around("get", self.inner.get(id)).await
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        self.around.around("counts", self.inner.counts()).await
    }

    async fn oldest_due(&self, endpoint: &EndpointName) -> Result<Option<Duration>, StoreError> {
        self.around.around("oldest_due", self.inner.oldest_due(endpoint)).await
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        self.around.around("change", self.inner.change(change, filter, limit)).await
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        self.around.around("settle_handoff", self.inner.settle_handoff(id, result)).await
    }

    async fn keep_handoff(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError> {
        self.around.around("keep_handoff", self.inner.keep_handoff(id, result, keep_for)).await
    }

    async fn apply_kept_handoffs(&self, limit: usize) -> Result<u64, StoreError> {
        self.around.around("apply_kept_handoffs", self.inner.apply_kept_handoffs(limit)).await
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        self.around.around("sessions", self.inner.sessions(blocked_only, limit)).await
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        self.around.around("leases", self.inner.leases(limit)).await
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.around.around("retain", self.inner.retain(endpoint, policy, limit)).await
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        self.around.around("create_redrive", self.inner.create_redrive(spec)).await
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.around.around("redrives", self.inner.redrives()).await
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        self.around.around("act_on_redrive", self.inner.act_on_redrive(id, action)).await
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.around.around("step_redrives", self.inner.step_redrives()).await
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        self.around.around("schema", self.inner.schema()).await
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        self.around.around("check", self.inner.check()).await
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        self.around.around("repair", self.inner.repair()).await
    }
}
