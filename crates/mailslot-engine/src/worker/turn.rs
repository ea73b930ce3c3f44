//! The turn loop: settles what is finished and claims what is next, both in one transaction of the store. A store that
//! takes several exchanges at once gets the next one while the one before is still on its way.

use super::backlog::{Backlog, Job};
use super::control::{Wanted, Wish, WorkerState};
use super::execute::Finished;
use super::in_flight::InFlight;
use super::pace::Pace;
use crate::follow::OutcomeEvent;
use crate::inbox::Engine;
use crate::outage::Outage;
use crate::store::may_be_one_message;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use mailslot_core::breaker::Circuit;
use mailslot_core::store::{Exchange, Exchanged, LeaseRequest, Leased, Settled};
use mailslot_core::{
    CancelCause, Cancellation, Contract, Disposition, MessageId, Owner, Settlement, Status, StoreError,
    StoreErrorKind,
};
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long a verdict waits for others while more handlers run: one tick of the timer.
const LINGER: Duration = Duration::from_millis(1);

/// The first wait after the store failed; it doubles up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(50);

/// The longest wait after the store failed.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How long the last settlements may take at shutdown if the store fails: then their leases run out instead.
const LAST_SETTLE: Duration = Duration::from_secs(5);

pub(super) struct TurnLoop {
    engine: Arc<Engine>,
    owner: Owner,
    in_flight: Arc<InFlight>,
    backlog: Arc<Backlog>,
    finished: mpsc::UnboundedReceiver<Finished>,
    abort: watch::Sender<bool>,
    wishes: watch::Receiver<Wish>,
    /// The wish that is followed.
    wish: Wish,
    /// The drain that has reached its end.
    drained: Option<Wish>,
    /// The exchanges that are on their way.
    turns: FuturesUnordered<BoxFuture<'static, Turn>>,
    /// How many of them the store takes at once.
    turns_max: usize,
    /// How many messages they may bring.
    claiming: usize,
    /// Counts reasons to look, so that one that comes while a claim is on its way is not taken for answered by it.
    news: u64,
    /// Claimed and not finished.
    in_hand: usize,
    /// Finished and not settled.
    settlements: Vec<Settlement>,
    /// Since when the oldest of them waits.
    waiting_since: Option<Instant>,
    /// Whether a claim may find something.
    may_claim: bool,
    /// Whether the last claim was full.
    last_was_full: bool,
    /// Whether the store holds messages back until one that this process has is settled.
    held_back: bool,
    /// When to look even if nobody announced anything.
    look_at: Instant,
    pace: Pace,
    /// Contracts that the store holds, for routes by pattern.
    seen: BTreeSet<Contract>,
    backoff: Duration,
    retry_at: Option<Instant>,
    outage: Outage,
    stopping: Option<Instant>,
}

impl TurnLoop {
    pub(super) fn new(
        engine: Arc<Engine>,
        owner: Owner,
        in_flight: Arc<InFlight>,
        backlog: Arc<Backlog>,
        finished: mpsc::UnboundedReceiver<Finished>,
        abort: watch::Sender<bool>,
    ) -> Self {
        let turns_max = engine.store.capabilities().exchanges_at_once.max(1);
        let wishes = engine.control.wishes();
        let wish = *wishes.borrow();
        Self {
            engine,
            owner,
            in_flight,
            backlog,
            finished,
            abort,
            wishes,
            wish,
            drained: None,
            turns: FuturesUnordered::new(),
            turns_max,
            claiming: 0,
            news: 0,
            in_hand: 0,
            settlements: Vec::new(),
            waiting_since: None,
            may_claim: true,
            last_was_full: false,
            held_back: false,
            look_at: Instant::now(),
            pace: Pace::new(Instant::now().into_std()),
            seen: BTreeSet::new(),
            backoff: BACKOFF,
            retry_at: None,
            outage: Outage::new("claims and verdicts"),
            stopping: None,
        }
    }

    pub(super) async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let engine = self.engine.clone();
        let mut shutdown = pin!(shutdown);
        let mut news = engine.store.work_signal().listen();
        let mut circuit = engine.circuit.watch();
        loop {
            while let Ok(finished) = self.finished.try_recv() {
                self.take(finished);
            }
            self.follow_wishes();
            if self.is_over() {
                return;
            }
            if self.is_time_for_a_turn() {
                // What is announced from here on is not in this claim, so it must wake the next wait.
                news = engine.store.work_signal().listen();
                self.begin_turn().await;
                continue;
            }
            let claims = self.claims();
            let next_event = self.next_event();
            tokio::select! {
                biased;
                finished = self.finished.recv() => finished.into_iter().for_each(|finished| self.take(finished)),
                () = shutdown.as_mut(), if self.stopping.is_none() => self.stop(),
                _ = self.wishes.changed() => {}
                // What was left alone waits in the store, and nothing announces it.
                _ = circuit.changed() => self.may_claim = true,
                Some(turn) = self.turns.next() => self.end_turn(turn).await,
                () = &mut news, if claims && !self.may_claim => self.hear(),
                () = tokio::time::sleep_until(next_event) => self.wake(),
            }
        }
    }

    fn hear(&mut self) {
        self.may_claim = true;
        self.news += 1;
    }

    fn claims(&self) -> bool {
        self.stopping.is_none()
            && matches!(self.wish.wanted, Wanted::Run | Wanted::Drain { .. })
            && !self.is_drained()
    }

    fn is_drained(&self) -> bool {
        self.drained == Some(self.wish)
    }

    /// Lets the state follow what is wanted.
    fn follow_wishes(&mut self) {
        if self.stopping.is_some() {
            self.end_grace();
            return;
        }
        let wish = *self.wishes.borrow_and_update();
        if self.wish != wish {
            self.wish = wish;
            self.may_claim = true;
        }
        let idle = self.is_idle();
        let state = match wish.wanted {
            Wanted::Run => WorkerState::Running,
            Wanted::Pause if idle => WorkerState::Paused,
            Wanted::Pause => WorkerState::Pausing,
            Wanted::Drain { .. } if self.is_drained() => WorkerState::Drained,
            Wanted::Drain { .. } => WorkerState::Draining,
        };
        self.engine.control.answer(wish, state);
        if wish.wanted == Wanted::Pause || self.engine.circuit.circuit() == Circuit::Open {
            self.release_unstarted();
        }
    }

    fn is_idle(&self) -> bool {
        self.in_hand == 0 && self.settlements.is_empty() && self.turns.is_empty()
    }

    fn stop(&mut self) {
        self.engine.control.answer(self.wish, WorkerState::Stopping);
        self.release_unstarted();
        self.in_flight.cancel_all(CancelCause::Shutdown);
        self.stopping = Some(Instant::now() + self.engine.worker.grace);
    }

    /// After the grace time: handlers that still run are dropped and their messages given back.
    fn end_grace(&mut self) {
        if self.in_hand > 0 && self.stopping.is_some_and(|end| end <= Instant::now()) {
            self.abort.send_replace(true);
        }
    }

    fn is_over(&self) -> bool {
        let Some(end) = self.stopping else { return false };
        self.is_idle() || (self.in_hand == 0 && end + LAST_SETTLE <= Instant::now())
    }

    fn release_unstarted(&mut self) {
        for job in self.backlog.drain() {
            let Leased { envelope, attempt, lease, .. } = job.leased;
            let disposition = Disposition::Release;
            let settlement = Settlement { lease, seq: envelope.seq, attempt, disposition, error: None };
            self.take(Finished::Decided(settlement));
        }
    }

    fn take(&mut self, finished: Finished) {
        self.in_hand -= 1;
        self.pace.finished();
        // A drain ends with an empty claim, so the end of each handler asks for one.
        if self.held_back || self.wish.is_drain() {
            self.hear();
        }
        match finished {
            Finished::Decided(settlement) => {
                self.waiting_since.get_or_insert_with(Instant::now);
                self.settlements.push(settlement);
            }
            Finished::Settled(settlement, settled) => {
                self.in_flight.remove(settlement.lease.generation, settlement.seq);
                self.count(&settlement, settled);
            }
        }
    }

    /// How many messages may be claimed now.
    fn capacity(&self) -> usize {
        if !self.claims() || self.settlements.len() >= self.engine.worker.batch {
            return 0;
        }
        let worker = &self.engine.worker;
        let hold = worker.concurrency + self.pace.ahead(worker.batch * self.turns_max);
        let hold = self.engine.circuit.limit(hold);
        hold.saturating_sub(self.in_hand + self.claiming).min(worker.batch)
    }

    fn is_time_for_a_turn(&self) -> bool {
        let now = Instant::now();
        if self.turns.len() == self.turns_max || self.retry_at.is_some_and(|at| at > now) {
            return false;
        }
        let enough = self.engine.worker.batch.div_ceil(2);
        let settle = !self.settlements.is_empty()
            && (self.in_hand == 0
                || self.settlements.len() >= enough
                || self.waiting_since.is_some_and(|since| since + LINGER <= now));
        let capacity = self.capacity();
        let is_urgent = self.backlog.len() == 0 && self.claiming == 0;
        let claim = self.may_claim && capacity > 0 && (is_urgent || capacity >= enough);
        settle || claim
    }

    fn next_event(&self) -> Instant {
        let idle = Instant::now() + Duration::from_secs(3600);
        // While no turn can begin, the end of one is what to wait for.
        let can_begin = self.turns.len() < self.turns_max;
        let linger = self.waiting_since.filter(|_| can_begin).map(|since| since + LINGER);
        let look = self.claims().then_some(self.look_at);
        let probe = self.claims().then(|| self.engine.circuit.open_until()).flatten();
        let end = self.stopping.map(|end| if *self.abort.borrow() { end + LAST_SETTLE } else { end });
        let next = [linger, look, probe, end].into_iter().flatten().min().unwrap_or(idle);
        // While the store fails, nothing else is worth waking for.
        self.retry_at.map_or(next, |at| next.max(at))
    }

    fn wake(&mut self) {
        if self.claims() && self.look_at <= Instant::now() {
            self.may_claim = true;
            self.look_at = Instant::now() + self.jittered_poll();
        }
    }

    fn jittered_poll(&self) -> Duration {
        self.engine.worker.poll.mul_f64(0.8 + 0.4 * self.engine.random.unit())
    }

    async fn begin_turn(&mut self) {
        let settlements: Vec<_> = {
            let count = self.settlements.len().min(mailslot_core::limits::SETTLE_BATCH_MAX);
            self.settlements.drain(..count).collect()
        };
        self.waiting_since = (!self.settlements.is_empty()).then(Instant::now);
        self.pace.turn(Instant::now().into_std());
        let lease = self.lease_request().await;
        let limit = lease.as_ref().map_or(0, |lease| lease.limit);
        if limit > 0 {
            // Until this claim says that there may be more, or somebody announces it.
            self.may_claim = self.turns_max > 1 && self.last_was_full;
        }
        self.claiming += limit;
        let deadline = Instant::now().into_std() + self.engine.worker.lease;
        let engine = self.engine.clone();
        let at = Instant::now();
        // What it settles itself, it settles before it looks.
        let is_alone = self.is_idle();
        let begun = Begun { at, settlements, limit, deadline, news: self.news, wish: self.wish, is_alone };
        self.turns.push(Box::pin(async move {
            let exchange = Exchange { settlements: begun.settlements.clone(), lease };
            let answer = ask_store(&engine, exchange).await;
            (begun, answer)
        }));
    }

    async fn end_turn(&mut self, (begun, answer): Turn) {
        self.claiming -= begun.limit;
        match answer {
            Ok(exchanged) => {
                self.backoff = BACKOFF;
                self.retry_at = None;
                self.outage.worked();
                self.exchanged(&begun, exchanged);
            }
            Err(error) => {
                self.may_claim |= begun.limit > 0;
                // One from before the store came back says nothing new.
                if self.outage.is_news(begun.at) {
                    self.outage.failed(&error, self.backoff);
                }
                self.failed(begun.settlements, &error).await;
            }
        }
        if self.stopping.is_some() {
            self.release_unstarted();
        }
    }

    async fn lease_request(&mut self) -> Option<LeaseRequest> {
        let limit = self.capacity();
        if limit == 0 || !self.may_claim {
            return None;
        }
        if self.engine.routes.has_patterns() {
            self.see_contracts().await;
        }
        let due_until = match self.wish.wanted {
            Wanted::Drain { due_until } => Some(due_until),
            Wanted::Run | Wanted::Pause => None,
        };
        Some(LeaseRequest {
            owner: self.owner.clone(),
            lanes: self.engine.routes.lanes(&self.engine.endpoint, &self.seen),
            limit,
            duration: self.engine.worker.lease,
            tenant: None,
            due_until,
        })
    }

    async fn see_contracts(&mut self) {
        match self.engine.store.counts().await {
            Ok(counts) => {
                let here = counts.into_iter().filter(|count| count.endpoint == self.engine.endpoint);
                self.seen.extend(here.map(|count| count.contract));
            }
            Err(error) => tracing::debug!(%error, "failed to read which contracts the store holds"),
        }
    }

    fn exchanged(&mut self, begun: &Begun, exchanged: Exchanged) {
        for (settlement, &settled) in begun.settlements.iter().zip(&exchanged.settled) {
            self.in_flight.remove(settlement.lease.generation, settlement.seq);
            self.count(settlement, settled);
        }
        if begun.limit == 0 {
            return;
        }
        self.tell_of_refused(&exchanged.refused);
        let refused = exchanged.refused.len() as u64;
        let leased = exchanged.leased.len();
        self.engine.stats.add(|stats| {
            stats.dead_lettered += refused;
            stats.leased += leased as u64;
        });
        // A full claim means that there may be more. What was announced or wished for while it was on its way asks for
        // another one too.
        self.last_was_full = leased == begun.limit || refused > 0;
        self.may_claim = self.last_was_full || self.news != begun.news || self.wish != begun.wish;
        self.held_back = exchanged.held_back > 0;
        let poll = self.jittered_poll();
        let due_in = exchanged.next_due.map(|due| due.duration_since(exchanged.now));
        let due_in = due_in.and_then(|due_in| Duration::try_from(due_in).ok());
        self.look_at = Instant::now() + due_in.map_or(poll, |due_in| due_in.min(poll));
        if self.wish.is_drain() && leased == 0 && self.is_idle() {
            self.end_drain(begun);
        }
        self.start(exchanged.leased, begun.deadline);
    }

    /// A claim that looked while something was in hand or on its way has not seen what that one's end made due, such as
    /// the next of its session: then another one has to look.
    fn end_drain(&mut self, begun: &Begun) {
        if begun.is_alone && begun.wish == self.wish {
            self.drained = Some(self.wish);
        } else {
            self.may_claim = true;
        }
    }

    fn start(&mut self, leased: Vec<Leased>, deadline: std::time::Instant) {
        let Some(first) = leased.first() else { return };
        let token = first.lease;
        self.in_hand += leased.len();
        let jobs: Vec<_> =
            leased.into_iter().map(|leased| Job { leased, cancellation: Cancellation::new() }).collect();
        let members: HashMap<_, _> =
            jobs.iter().map(|job| (job.leased.envelope.seq, job.cancellation.clone())).collect();
        self.in_flight.add(token, deadline, members);
        self.backlog.push_all(jobs);
    }

    fn count(&self, settlement: &Settlement, settled: Settled) {
        if settled == Settled::LeaseLost {
            tracing::debug!(seq = %settlement.seq, "a verdict came after its lease was lost");
        }
        self.engine.stats.add(|stats| match (settled, &settlement.disposition) {
            (Settled::LeaseLost, _) => stats.lease_lost += 1,
            (Settled::Applied(Status::Completed), _) => stats.completed += 1,
            (Settled::Applied(Status::DeadLettered), _) => stats.dead_lettered += 1,
            (Settled::Applied(Status::Skipped), _) => stats.skipped += 1,
            (Settled::Applied(Status::Suspended), _) => stats.suspended += 1,
            (Settled::Applied(Status::Cancelled), _) => stats.cancelled += 1,
            (Settled::Applied(_), Disposition::Release) => stats.released += 1,
            (Settled::Applied(_), _) => stats.retried += 1,
        });
    }

    /// Keeps the verdicts for another turn. Nothing is lost: either they are settled later, or their leases run out.
    async fn failed(&mut self, settlements: Vec<Settlement>, error: &StoreError) {
        self.engine.stats.add(|stats| stats.store_errors += 1);
        let keep =
            if may_be_one_message(error) { self.settle_one_by_one(settlements).await } else { settlements };
        self.settlements.splice(0..0, keep);
        self.waiting_since = (!self.settlements.is_empty()).then(Instant::now);
        self.retry_at = Some(Instant::now() + self.backoff);
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
    }

    /// Those who follow hear of it beside the turns, which wait for nobody.
    fn tell_of_refused(&self, refused: &[MessageId]) {
        if self.engine.followers.is_empty() {
            return;
        }
        for id in refused {
            let followers = Arc::clone(&self.engine.followers);
            let event = OutcomeEvent::of_refused(&self.engine.endpoint, *id);
            tokio::spawn(async move { followers.ended(event).await });
        }
    }

    /// After a failure that will not pass: settles what can be settled and leaves the rest to the end of its lease, so
    /// that one bad row holds up no other.
    async fn settle_one_by_one(&mut self, settlements: Vec<Settlement>) -> Vec<Settlement> {
        let mut keep = Vec::new();
        for settlement in settlements {
            let exchange = Exchange { settlements: vec![settlement.clone()], lease: None };
            match ask_store(&self.engine, exchange).await {
                Ok(exchanged) => {
                    self.in_flight.remove(settlement.lease.generation, settlement.seq);
                    exchanged.settled.into_iter().for_each(|settled| self.count(&settlement, settled));
                }
                Err(error) if !may_be_one_message(&error) => keep.push(settlement),
                Err(error) => {
                    tracing::error!(%error, seq = %settlement.seq, "failed to settle a message; its lease will run out");
                    self.in_flight.remove(settlement.lease.generation, settlement.seq);
                }
            }
        }
        keep
    }
}

/// An exchange that has come back.
type Turn = (Begun, Result<Exchanged, StoreError>);

/// What an exchange began with.
struct Begun {
    at: Instant,
    settlements: Vec<Settlement>,
    /// How many messages it may claim.
    limit: usize,
    /// When what it claims is lost at the latest.
    deadline: std::time::Instant,
    /// How many reasons to look there were before it.
    news: u64,
    /// What was wanted: a drain does not end with a claim from before it.
    wish: Wish,
    /// Whether nothing was in hand, unsettled or on its way.
    is_alone: bool,
}

/// A call that does not answer within a lease counts as failed: whatever it claims is over by then, and a stop must not
/// wait for it.
async fn ask_store(engine: &Engine, exchange: Exchange) -> Result<Exchanged, StoreError> {
    let lease = engine.worker.lease;
    let answer = tokio::time::timeout(lease, engine.store.exchange(exchange)).await;
    answer.unwrap_or_else(|_| {
        let detail = format!("the store gave no answer within {lease:?}; look at its load and its locks");
        Err(StoreError::new(StoreErrorKind::Unavailable, "exchange", detail))
    })
}
