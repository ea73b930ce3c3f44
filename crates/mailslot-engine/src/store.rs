//! One name for what the engine needs of a store, and a store that is any of them.

use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::store::{
    AppendGroup, Appended, Claim, Claimed, Concluded, Conclusion, Exchange, Exchanged, ExtendRequest,
    Extended, Lookup, Question, Recovered,
};
use mailslot_core::{
    Capabilities, DeliveryIdentity, EndpointName, InboxStore, LedgerStore, OperatorStore, StoreError,
    StoreErrorKind, WorkSignal,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A store that can do all that the engine needs.
pub trait Store: InboxStore + OperatorStore {}

impl<S: InboxStore + OperatorStore> Store for S {}

/// Whether the error may come from one message of many, so that the others are worth a try without it. A store that is
/// away, full or read-only fails for all of them alike, and will take all of them when it is back.
pub(crate) fn may_be_one_message(error: &StoreError) -> bool {
    !error.is_transient() && !matches!(error.kind(), StoreErrorKind::NotWritable | StoreErrorKind::Schema)
}

/// A store that also remembers deliveries.
trait Whole: Store + LedgerStore {}

impl<S: Store + LedgerStore> Whole for S {}

/// A store whose kind is known at run time only, such as one that a URL named. Clones share it.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn Whole>);

impl AnyStore {
    /// Forgets the kind of `store`.
    pub fn new(store: impl Store + LedgerStore) -> Self {
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

mailslot_core::delegate_operator_store!([] AnyStore, 0);

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LedgerStore for AnyStore {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        self.0.look_up(questions).await
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        self.0.conclude(conclusions).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.0.claim(claim).await
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        self.0.give_up(identity, owner).await
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.0.purge(endpoint, retention, limit).await
    }
}
