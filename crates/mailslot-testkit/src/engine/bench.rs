//! What a case works on: a store under a tap, and workers on it.

use super::script::{Order, order};
use super::tap::{Call, TapStore};
use super::transaction::Transactions;
use crate::store::Fixture;
use mailslot_core::store::RetentionPolicy;
use mailslot_core::{
    Attempt, HandlerError, MessageId, OutcomeKind, Reason, Receipt, Retry, Status, StoreErrorKind,
};
use mailslot_engine::{Inbox, InboxBuilder, MaintenanceConfig, RunError, Stats, WorkerConfig};
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often the workers of the cases do what they do from time to time. It is real time, so nothing depends on it but
/// how long a case takes.
const OFTEN: Duration = Duration::from_millis(20);

/// How long the workers of the cases wait before they retry, by the clock that the cases move.
pub(super) const RETRY_SECONDS: i64 = 10;

/// How often the workers of the cases try.
pub(super) const ATTEMPTS: u32 = 3;

/// How long their leases last. Local ends of leases are real time and must not be reached on a busy machine.
pub(super) const LEASE_SECONDS: i64 = 60;

/// A fresh store under a tap. Its fixture's methods look at the store directly.
pub(super) struct Bench {
    fixture: Fixture,
    /// What the inboxes of [`builder`](Self::builder) work on.
    pub(super) tap: TapStore,
    pub(super) transactions: Option<Arc<dyn Transactions>>,
}

impl Deref for Bench {
    type Target = Fixture;
    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl Bench {
    pub(super) fn new(fixture: Fixture, transactions: Option<Arc<dyn Transactions>>) -> Self {
        let tap = TapStore::new(Arc::clone(&fixture.store));
        Self { fixture, tap, transactions }
    }

    /// Another process on the same store.
    pub(super) fn other_process(&self) -> TapStore {
        TapStore::new(Arc::clone(&self.store))
    }

    /// An inbox in the making, with timers that fire often and leases that hold long.
    pub(super) fn builder(&self) -> InboxBuilder<TapStore> {
        builder_on(self.tap.clone())
    }

    /// The kinds and reasons of what was recorded of a message.
    pub(super) async fn outcomes(&self, id: MessageId) -> Vec<(OutcomeKind, Option<Reason>)> {
        self.history(id).await.into_iter().map(|outcome| (outcome.kind, outcome.reason)).collect()
    }

    /// Where a message stands and why.
    pub(super) async fn end(&self, id: MessageId) -> (Status, Option<Reason>) {
        let record = self.record(id).await;
        (record.status, record.reason)
    }

    /// How often a message was leased since it was accepted or requeued.
    pub(super) async fn attempt(&self, id: MessageId) -> u32 {
        let Attempt { number, .. } = self.record(id).await.attempt;
        number
    }

    /// Moves the clock past the delay of a retry, and tells the worker.
    pub(super) fn pass_retry(&self, worker: &Worker) {
        self.advance(RETRY_SECONDS);
        worker.wake();
    }
}

/// An inbox in the making on any tap.
pub(super) fn builder_on(tap: TapStore) -> InboxBuilder<TapStore> {
    let lease = Duration::from_secs(LEASE_SECONDS.unsigned_abs());
    let worker = WorkerConfig {
        concurrency: 8,
        poll: OFTEN,
        lease,
        heartbeat: OFTEN,
        grace: lease,
        ..WorkerConfig::default()
    };
    let maintenance = MaintenanceConfig {
        recover_every: OFTEN,
        redrive_every: OFTEN,
        retain_every: OFTEN,
        retention: RetentionPolicy::keep_all(),
    };
    let retry = Retry::fixed(Duration::from_secs(RETRY_SECONDS.unsigned_abs()));
    let retry = retry.jitter(false).max_attempts(ATTEMPTS);
    Inbox::builder(tap).worker(worker).maintenance(maintenance).retry(retry)
}

/// An inbox whose worker runs. A case must stop or kill it, so that nothing moves while the invariants are checked.
pub(super) struct Worker {
    inbox: Inbox<TapStore>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<Result<(), RunError>>>,
    /// How many claims there were before this worker.
    claims: u64,
}

impl Deref for Worker {
    type Target = Inbox<TapStore>;
    fn deref(&self) -> &Inbox<TapStore> {
        &self.inbox
    }
}

/// Builds an inbox and lets it work.
pub(super) fn start(builder: InboxBuilder<TapStore>) -> Worker {
    resume(fine(builder.build()))
}

/// Lets an inbox work.
pub(super) fn resume(inbox: Inbox<TapStore>) -> Worker {
    let (stop, stopped) = oneshot::channel();
    let claims = inbox.store().calls(Call::Claim);
    let running = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.run(async { stopped.await.unwrap_or_default() }).await }
    });
    Worker { inbox, stop: Some(stop), running: Some(running), claims }
}

impl Worker {
    /// Accepts the order of this number.
    pub(super) async fn order(&self, number: u32) -> MessageId {
        accepted(&self.inbox, number).await.id
    }

    /// Accepts an order into a session.
    pub(super) async fn order_in(&self, session: &str, number: u32) -> MessageId {
        fine(self.accept(&order(number)).session(session).await).id
    }

    /// Waits until the counters say so.
    pub(super) async fn until(&self, reached: impl FnMut(&Stats) -> bool) -> Stats {
        *self.watch().wait_for(reached).await.expect("the counters live as long as the inbox")
    }

    /// Waits until the worker claims.
    pub(super) async fn runs(&self) {
        self.store().called(Call::Claim, self.claims + 1).await;
    }

    /// Handles all that is due.
    pub(super) async fn drain(&self) {
        self.runs().await;
        fine(self.control().drain().await);
        self.control().resume();
    }

    /// Asks the worker to stop.
    pub(super) fn begin_stop(&mut self) {
        self.stop.take();
    }

    /// Stops the worker, waits for its end, and gives its counters.
    pub(super) async fn stop(mut self) -> Stats {
        self.begin_stop();
        let running = self.running.take().expect("a worker is stopped once");
        fine(fine(running.await));
        self.stats()
    }

    /// Ends the worker as a crash would: in the middle of whatever it does. Its tap is dead from then on, since a
    /// heartbeat on its way would outlive it otherwise.
    pub(super) async fn kill(mut self) {
        self.store().cut_off(Call::Extend).await;
        let running = self.running.take().expect("a worker is stopped once");
        running.abort();
        let ended = running.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the worker ended before it was killed");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        assert!(
            self.running.is_none() || std::thread::panicking(),
            "the case did not end in time, or forgot to stop its worker"
        );
    }
}

/// Lets every lease of a worker run out: no heartbeat reaches the store until the call is mended. One that is on its
/// way must not arrive after the clock has moved, so the first failed one is awaited.
pub(super) async fn lose_leases(b: &Bench, worker: &Worker) {
    let failed = worker.stats().heartbeats_failed;
    b.tap.fail(Call::Extend, StoreErrorKind::Unavailable);
    worker.until(|stats| stats.heartbeats_failed > failed).await;
    b.advance(LEASE_SECONDS);
}

/// Accepts the order of this number.
pub(super) async fn accepted(inbox: &Inbox<TapStore>, number: u32) -> Receipt {
    fine(inbox.accept(&order(number)).await)
}

/// A handler that succeeds.
pub(super) async fn succeed(_order: Order) {}

/// A handler that fails in a way that may pass.
pub(super) async fn fail(_order: Order) -> Result<(), HandlerError> {
    Err(HandlerError::retryable("the bank is closed"))
}

/// Unwraps what must not fail.
#[track_caller]
pub(super) fn fine<T, E: Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("expected no error, got {error:?}"))
}
