//! A store that counts its write transactions.

use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::store::{AppendGroup, Appended, Exchange, Exchanged, ExtendRequest, Extended, Recovered};
use mailslot_core::{Capabilities, InboxStore, StoreError, WorkSignal};
use mailslot_engine::AnyStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts around another store. Clones share the counter.
#[derive(Debug, Clone)]
pub struct Counted {
    inner: AnyStore,
    commits: Arc<AtomicU64>,
}

impl Counted {
    /// Counts around `inner`, from zero.
    pub fn new(inner: AnyStore) -> Self {
        Self { inner, commits: Arc::default() }
    }

    /// Appends and exchanges that changed something.
    pub fn commits(&self) -> u64 {
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

mailslot_core::delegate_operator_store!([] Counted, inner);
