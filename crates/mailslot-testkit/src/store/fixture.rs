//! A fresh store with a clock that stands still.

use futures_util::future::BoxFuture;
use mailslot_core::{InboxStore, LedgerStore, ManualClock, OperatorStore, Owner};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A store that the suite can test: all traits.
pub trait TestStore: InboxStore + OperatorStore + LedgerStore {}

impl<S: InboxStore + OperatorStore + LedgerStore> TestStore for S {}

pub(super) type Reopen =
    Arc<dyn Fn(Arc<ManualClock>) -> BoxFuture<'static, Arc<dyn TestStore>> + Send + Sync>;

/// What a constructor gives: a fresh, empty store, and what belongs to it.
pub struct Opened {
    pub(super) store: Arc<dyn TestStore>,
    pub(super) guards: Vec<Box<dyn Any + Send>>,
    pub(super) reopen: Option<Reopen>,
}

impl Opened {
    /// A store that needs nothing else.
    pub fn new(store: impl TestStore) -> Self {
        Self::shared(Arc::new(store))
    }

    /// A store that is shared already.
    pub fn shared(store: Arc<dyn TestStore>) -> Self {
        Self { store, guards: Vec::new(), reopen: None }
    }

    /// Keeps something alive until the case is over and the store is dropped, such as a temporary directory.
    pub fn keep(mut self, guard: impl Any + Send) -> Self {
        self.guards.push(Box::new(guard));
        self
    }

    /// Says how to open the same data again. The first handle may be gone by then, without having been closed, as
    /// after a crash; or it may live on, if the store says that several processes can share it.
    pub fn reopen<F, Fut>(mut self, open: F) -> Self
    where
        F: Fn(Arc<ManualClock>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Arc<dyn TestStore>> + Send + 'static,
    {
        self.reopen = Some(Arc::new(move |clock| Box::pin(open(clock))));
        self
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("capabilities", &self.store.capabilities()).finish_non_exhaustive()
    }
}

/// What a case works on. Its methods are the vocabulary of the suite; they panic where the store fails.
pub struct Fixture {
    /// The store under test.
    pub store: Arc<dyn TestStore>,
    /// The clock that the store reads.
    pub clock: Arc<ManualClock>,
    /// The worker of claims that name no other.
    pub owner: Owner,
    reopen: Option<Reopen>,
    // Last, so that it is dropped after the store.
    _guards: Vec<Box<dyn Any + Send>>,
}

impl Fixture {
    /// Wraps a fresh store that reads `clock`.
    pub fn new(opened: Opened, clock: Arc<ManualClock>) -> Self {
        let owner = super::verbs::owner("worker");
        Self { store: opened.store, clock, owner, reopen: opened.reopen, _guards: opened.guards }
    }

    /// Whether the constructor said how to open the same data again.
    pub fn can_reopen(&self) -> bool {
        self.reopen.is_some()
    }

    /// Opens the same data again through a new handle; the old one is dropped first.
    ///
    /// # Panics
    /// The constructor gave no way to do so.
    pub async fn reopen(&mut self) {
        let nothing: Arc<dyn TestStore> = Arc::new(mailslot_core::MemoryStore::new());
        drop(std::mem::replace(&mut self.store, nothing));
        self.store = self.another_handle().await;
    }

    /// Another handle on the same data, as another process would have.
    ///
    /// # Panics
    /// The constructor gave no way to get one.
    pub async fn another_handle(&self) -> Arc<dyn TestStore> {
        let reopen = self.reopen.as_ref().expect("the case needs a constructor with `reopen`");
        reopen(Arc::clone(&self.clock)).await
    }
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("clock", &self.clock).finish_non_exhaustive()
    }
}
