//! A store between the engine and the store under test: it counts calls, holds them, and lets them fail.

use super::journal::Journal;
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
    StoreError, StoreErrorKind, WorkSignal,
};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// The calls that cases watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Call {
    Append,
    Exchange,
    /// An exchange that claims.
    Claim,
    /// A claim that a drain makes.
    DrainClaim,
    Now,
    Extend,
    Retain,
    LookUp,
    Conclude,
    ClaimDelivery,
    Purge,
}

/// What one kind of call is told to do, and how often it was made.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    begun: u64,
    /// How often the store has done it.
    done: u64,
    /// How many calls are in the store.
    inside: u64,
    /// Calls wait before they reach the store.
    held: bool,
    /// Calls reach the store and wait with its answer.
    answers_held: bool,
    fails: Option<StoreErrorKind>,
}

type Refuse = Box<dyn Fn(&[AppendGroup]) -> bool + Send + Sync>;

/// The store of the suite's inboxes: a tap on the store under test. Clones share it; another tap on the same store is
/// another process.
#[derive(Clone)]
pub struct TapStore {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn TestStore>,
    lines: watch::Sender<HashMap<Call, Line>>,
    /// How many groups each append held.
    appends: Mutex<Vec<usize>>,
    refuse: Mutex<Option<Refuse>>,
    /// Replaces the store's own signal.
    signal: Option<WorkSignal>,
    /// Whether the store says that its look-ups may be stale.
    is_stale: AtomicBool,
    journal: Journal,
}

impl TapStore {
    pub(super) fn new(store: Arc<dyn TestStore>) -> Self {
        Self::with_signal(store, None)
    }

    /// A tap that hides the store's own work signal: nothing is announced but by [`Inbox::wake`].
    ///
    /// [`Inbox::wake`]: mailslot_engine::Inbox::wake
    pub(super) fn silent(store: Arc<dyn TestStore>) -> Self {
        Self::with_signal(store, Some(WorkSignal::new()))
    }

    fn with_signal(store: Arc<dyn TestStore>, signal: Option<WorkSignal>) -> Self {
        let inner = Inner {
            store,
            lines: watch::Sender::default(),
            appends: Mutex::default(),
            refuse: Mutex::default(),
            signal,
            is_stale: AtomicBool::new(false),
            journal: Journal::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    fn change(&self, call: Call, change: impl FnOnce(&mut Line)) {
        self.inner.lines.send_modify(|lines| change(lines.entry(call).or_default()));
    }

    /// How often a call was made.
    pub(super) fn calls(&self, call: Call) -> u64 {
        self.inner.lines.borrow().get(&call).map_or(0, |line| line.begun)
    }

    /// Waits until a call was made so often.
    pub(super) async fn called(&self, call: Call, times: u64) {
        self.wait(call, |line| line.begun >= times).await;
    }

    /// Waits until a call was made so much more often than it was by now.
    pub(super) async fn called_again(&self, call: Call, times: u64) {
        self.called(call, self.calls(call) + times).await;
    }

    async fn wait(&self, call: Call, until: impl Fn(&Line) -> bool) {
        let mut lines = self.inner.lines.subscribe();
        let waited = lines.wait_for(|lines| until(lines.get(&call).unwrap_or(&Line::default()))).await;
        waited.expect("the sender lives as long as the tap");
    }

    /// Waits until the store has done what a call asks for more often than `times`, whether or not the answer is held.
    pub(super) async fn done_beyond(&self, call: Call, times: u64) {
        self.wait(call, |line| line.done > times).await;
    }

    /// Lets calls wait before they reach the store, until [`open`](Self::open).
    pub(super) fn hold(&self, call: Call) {
        self.change(call, |line| line.held = true);
    }

    /// Lets no call reach the store any more, and waits until none is in it.
    pub(super) async fn cut_off(&self, call: Call) {
        self.hold(call);
        self.wait(call, |line| line.inside == 0).await;
    }

    /// Lets calls reach the store and wait with its answer, until [`open`](Self::open). Gives how often the store had
    /// done such a call at that moment: every later answer is held.
    pub(super) fn hold_answers(&self, call: Call) -> u64 {
        let mut done = 0;
        self.change(call, |line| {
            line.answers_held = true;
            done = line.done;
        });
        done
    }

    /// Lets held calls and answers go on.
    pub(super) fn open(&self, call: Call) {
        self.change(call, |line| (line.held, line.answers_held) = (false, false));
    }

    /// Lets calls fail before they reach the store, until [`mend`](Self::mend).
    pub(super) fn fail(&self, call: Call, kind: StoreErrorKind) {
        self.change(call, |line| line.fails = Some(kind));
    }

    /// Lets calls reach the store again.
    pub(super) fn mend(&self, call: Call) {
        self.change(call, |line| line.fails = None);
    }

    /// What this process did with deliveries, in order.
    pub(super) fn journal(&self) -> &Journal {
        &self.inner.journal
    }

    /// A call that is noted before and after it.
    async fn noted<T>(
        &self,
        call: Call,
        name: &str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.inner.journal.step(format!("{name}: asked")).await;
        let answer = self.pass(call, work).await;
        let done = if answer.is_ok() { "done" } else { "failed" };
        self.inner.journal.step(format!("{name}: {done}")).await;
        answer
    }

    /// Lets the store say that its look-ups may be stale.
    pub(super) fn be_stale(&self) {
        self.inner.is_stale.store(true, Ordering::Relaxed);
    }

    /// Refuses for good every append that this is true of.
    pub(super) fn refuse(&self, refuse: impl Fn(&[AppendGroup]) -> bool + Send + Sync + 'static) {
        *locked(&self.inner.refuse) = Some(Box::new(refuse));
    }

    /// How many groups each append held.
    pub(super) fn appends(&self) -> Vec<usize> {
        locked(&self.inner.appends).clone()
    }

    async fn pass<T>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.change(call, |line| line.begun += 1);
        let inside = self.enter(call).await;
        let fails = self.inner.lines.borrow().get(&call).and_then(|line| line.fails);
        if let Some(kind) = fails {
            return Err(StoreError::new(kind, "tap", "a test lets this call fail"));
        }
        let answer = work.await;
        // In one step, so that every answer after a hold is held and none before it.
        let mut held = false;
        self.change(call, |line| {
            line.done += 1;
            held = line.answers_held;
        });
        drop(inside);
        if held {
            self.wait(call, |line| !line.answers_held).await;
        }
        answer
    }
}

/// A call that is in the store; it leaves when its future is dropped, too.
struct Inside<'a> {
    tap: &'a TapStore,
    call: Call,
}

impl TapStore {
    /// Waits until calls are not held, and enters the store.
    async fn enter(&self, call: Call) -> Inside<'_> {
        loop {
            self.wait(call, |line| !line.held).await;
            let mut entered = false;
            self.change(call, |line| {
                entered = !line.held;
                line.inside += u64::from(entered);
            });
            if entered {
                return Inside { tap: self, call };
            }
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.tap.change(self.call, |line| line.inside -= 1);
    }
}

impl fmt::Debug for TapStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TapStore({})", self.capabilities().backend)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InboxStore for TapStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.store.capabilities();
        // One after the other, so that a case can say which accepts share one.
        capabilities.appends_at_once = 1;
        capabilities.reads_latest &= !self.inner.is_stale.load(Ordering::Relaxed);
        capabilities
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.pass(Call::Now, self.inner.store.now()).await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        locked(&self.inner.appends).push(groups.len());
        if locked(&self.inner.refuse).as_ref().is_some_and(|refuse| refuse(&groups)) {
            return Err(StoreError::new(StoreErrorKind::Invalid, "tap", "a test refuses this append"));
        }
        self.pass(Call::Append, self.inner.store.append(groups)).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        if let Some(lease) = &exchange.lease {
            self.change(Call::Claim, |line| line.begun += 1);
            if lease.due_until.is_some() {
                self.change(Call::DrainClaim, |line| line.begun += 1);
            }
        }
        self.pass(Call::Exchange, self.inner.store.exchange(exchange)).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        self.pass(Call::Extend, self.inner.store.extend(request)).await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.inner.store.recover(limit).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.inner.signal.as_ref().unwrap_or_else(|| self.inner.store.work_signal())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl OperatorStore for TapStore {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        self.inner.store.query(filter, page).await
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        self.inner.store.get(id).await
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        self.inner.store.counts().await
    }

    async fn oldest_due(&self, endpoint: &EndpointName) -> Result<Option<Duration>, StoreError> {
        self.inner.store.oldest_due(endpoint).await
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        self.inner.store.change(change, filter, limit).await
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        self.inner.store.settle_handoff(id, result).await
    }

    async fn keep_handoff(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError> {
        self.inner.store.keep_handoff(id, result, keep_for).await
    }

    async fn apply_kept_handoffs(&self, limit: usize) -> Result<u64, StoreError> {
        self.inner.store.apply_kept_handoffs(limit).await
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        self.inner.store.sessions(blocked_only, limit).await
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        self.inner.store.leases(limit).await
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.pass(Call::Retain, self.inner.store.retain(endpoint, policy, limit)).await
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        self.inner.store.create_redrive(spec).await
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.inner.store.redrives().await
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        self.inner.store.act_on_redrive(id, action).await
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        self.inner.store.step_redrives().await
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        self.inner.store.schema().await
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        self.inner.store.check().await
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        self.inner.store.repair().await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LedgerStore for TapStore {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        self.noted(Call::LookUp, "look up", self.inner.store.look_up(questions)).await
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        self.noted(Call::Conclude, "conclude", self.inner.store.conclude(conclusions)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.noted(Call::ClaimDelivery, "claim", self.inner.store.claim(claim)).await
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        self.inner.store.give_up(identity, owner).await
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.pass(Call::Purge, self.inner.store.purge(endpoint, retention, limit)).await
    }
}
