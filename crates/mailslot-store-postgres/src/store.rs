//! The store: it opens transactions and maps calls to them; rules are in the core, statements under `queries/`.

use crate::accept::Accepted;
use crate::append::{self, AppendResult, RACES_MAX};
use crate::config::PostgresOptions;
use crate::connection::{Connections, Lent, no_answer};
use crate::error::{is_missing_partition, is_race};
use crate::exchange::{self, Done, Plain, Wanted};
use crate::hints::{Hints, Look};
use crate::leases::{LeaseCache, Settling};
use crate::link::{Param, Session};
use crate::moves::{self, Promoted};
use crate::queries::{self, Statements};
use crate::retain::Walks;
use crate::retire::Waiting;
use crate::wakeup::Wakeup;
use crate::{accept, keeper, lanes, migrate, settle};
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::moves::{Moves, Slot};
use mailslot_core::store::{
    AppendGroup, Appended, Exchange, Exchanged, ExtendRequest, Extended, LeaseRequest, Leased, Recovered,
    Settled,
};
use mailslot_core::stored::{LaneCache, Read, instant};
use mailslot_core::{
    Capabilities, InboxStore, NewMessage, Reason, Settlement, Status, StoreError, WakeMode, WorkSignal,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An inbox in a PostgreSQL database. Clones share it, and so do any number of processes.
///
/// The server's clock is the clock of the store.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: PostgresOptions,
    pub(crate) statements: Statements,
    /// For accepts, claims and settlements.
    pub(crate) pinned: Arc<Connections>,
    /// For operators and maintenance.
    pub(crate) free: Arc<Connections>,
    /// For the keeper and the notifications.
    pub(crate) aside: Arc<Connections>,
    /// For handlers that commit with their completion.
    pub(crate) handlers: Arc<Connections>,
    pub(crate) lanes: LaneCache,
    pub(crate) leases: LeaseCache,
    pub(crate) hints: Hints,
    /// How far retention has looked.
    pub(crate) walks: Walks,
    /// Which partitions wait to be dropped.
    pub(crate) waiting: Waiting,
    /// Held by a claim that goes the long way: an owner may hold one suspect, which two claims at once would not see.
    long_claims: tokio::sync::Mutex<()>,
    /// Whether the last claim met messages that the short way leaves alone.
    odd: AtomicBool,
    pub(crate) wakeup: Arc<Wakeup>,
}

impl PostgresStore {
    /// Opens the store at `postgres://user:password@host:port/database` with the defaults of [`PostgresOptions`].
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(url.parse()?).await
    }

    /// Opens the store.
    ///
    /// # Errors
    /// `Schema`: the schema is missing and may not be made, was written by a newer version that this one cannot share it
    /// with, drifted, or is older and may not be migrated. `NotWritable`: a standby, or a role without the rights.
    /// `Unavailable`: the server cannot be reached, or refused the user.
    pub async fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        let sessions = migrate::prepare(&options).await?;
        let shared = Arc::new(Shared {
            statements: Statements::of_schema(&options.schema),
            pinned: Connections::pinned(&options, sessions),
            free: Connections::free(&options, sessions),
            aside: Connections::aside(&options, sessions),
            handlers: Connections::of_handlers(&options, sessions),
            lanes: LaneCache::default(),
            leases: LeaseCache::default(),
            hints: Hints::default(),
            walks: Walks::default(),
            waiting: Waiting::default(),
            long_claims: tokio::sync::Mutex::default(),
            odd: AtomicBool::new(false),
            wakeup: Arc::default(),
            options,
        });
        crate::wakeup::start(&shared, sessions);
        keeper::start(&shared);
        Ok(Self { shared })
    }

    /// How the accepts of other processes are noticed at present.
    pub fn wake_mode(&self) -> WakeMode {
        self.shared.wakeup.mode()
    }

    /// A test's time, or nothing for the server's.
    pub(crate) fn micros(&self) -> Option<i64> {
        self.shared.micros()
    }

    /// [`PostgresStore::micros`] as a parameter.
    pub(crate) fn time(&self) -> Param<'static> {
        Param::Int(self.micros())
    }

    pub(crate) fn wake(&self) {
        self.shared.wakeup.notify();
    }

    /// Bounds a call: one that takes longer is given up, and its connection with it.
    pub(crate) async fn within<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        // The pool waits as long for a connection as the call may take, so the whole has twice the time.
        let bound = self.shared.options.call_timeout * 2;
        tokio::time::timeout(bound, call).await.map_err(|_| no_answer(operation))?
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wakeup.closing.cancel();
    }
}

impl Shared {
    pub(crate) fn micros(&self) -> Option<i64> {
        self.options.clock.as_ref().map(|clock| clock.now().as_microsecond())
    }

    pub(crate) fn session<'s>(
        &'s self,
        link: &'s mut dyn crate::link::Link,
        operation: &'static str,
    ) -> Session<'s> {
        Session { link, statements: &self.statements, operation }
    }
}

#[async_trait]
impl InboxStore for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::none("postgres");
        capabilities.durable = true;
        capabilities.multi_process = true;
        capabilities.transactions = true;
        capabilities.reads_latest = true;
        // Through a pooler that shares sessions no notification comes.
        capabilities.wakes_other_processes =
            self.shared.options.listen && self.shared.pinned.keeps_statements();
        // Two commits share a flush to disk, and one is prepared while the other waits for it (measured: 1.2 to 1.7
        // times one, and four are slower than two).
        capabilities.appends_at_once = 2;
        capabilities.exchanges_at_once = 2;
        capabilities
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.within("now", async {
            let mut lent = self.shared.pinned.single("now").await?;
            let now = {
                let mut link = lent.link();
                self.shared
                    .session(&mut link, "now")
                    .row(queries::CLOCK_READ, vec![self.time()])
                    .await?
                    .int(0)
            };
            lent.finish().await?;
            Ok(instant(now))
        })
        .await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        AppendGroup::check_all(&groups)?;
        self.within("append", self.append_bounded(groups)).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        exchange.check()?;
        self.within("exchange", self.exchange_bounded(exchange)).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        request.check()?;
        if request.leases.is_empty() {
            return Ok(Vec::new());
        }
        self.within("extend", async {
            let mut lent = self.shared.pinned.single("extend").await?;
            let extended = {
                let mut link = lent.link();
                settle::extend(&mut self.shared.session(&mut link, "extend"), &request, self.time()).await?
            };
            lent.finish().await?;
            Ok(extended)
        })
        .await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.within("recover", self.recover_bounded(limit)).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.shared.wakeup.signal()
    }
}

impl PostgresStore {
    async fn append_bounded(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        let lanes = self.lanes_of("append", &groups).await?;
        if !accept::takes(&groups) {
            return self.append_slowly(&groups).await;
        }
        let accepted = match self.accept(&groups, &lanes).await {
            Err(error) if is_missing_partition(&error) => {
                keeper::provide_all(&self.shared).await?;
                self.accept(&groups, &lanes).await?
            }
            // A caller's transaction was in the way, and PostgreSQL chose to end this one.
            Err(error) if is_race(&error) => return self.append_slowly(&groups).await,
            accepted => accepted?,
        };
        if accepted.stored {
            self.wake();
        }
        self.find_known(groups, accepted.answers).await
    }

    async fn accept(
        &self,
        groups: &[AppendGroup],
        lanes: &HashMap<mailslot_core::stored::LaneKey, i64>,
    ) -> Result<Accepted, StoreError> {
        let mut lent = self.shared.pinned.single("append").await?;
        let sql = self.shared.statements.get(queries::MESSAGE_ACCEPT).clone();
        let statement = (sql, self.shared.pinned.keeps_statements());
        let accepted = accept::accept(&mut lent, statement, groups, lanes, self.micros()).await?;
        lent.finish().await?;
        Ok(accepted)
    }

    /// Answers for the groups whose keys were known.
    async fn find_known(
        &self,
        groups: Vec<AppendGroup>,
        answers: Vec<Option<Vec<Appended>>>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        let (known, answers) = accept::open_groups(groups, answers);
        let found = if known.is_empty() { Vec::new() } else { self.append_slowly(&known).await? };
        Ok(accept::join(answers, found))
    }

    async fn append_slowly(&self, groups: &[AppendGroup]) -> Result<Vec<Vec<Appended>>, StoreError> {
        const OPERATION: &str = "append";
        for _ in 0..RACES_MAX {
            let mut lent = self.shared.pinned.begin(OPERATION).await?;
            let appended = {
                let mut link = lent.link();
                let mut session = self.shared.session(&mut link, OPERATION);
                append::append(&mut session, groups, &self.shared.lanes, self.time()).await
            };
            match appended {
                Ok(Some(AppendResult { answers, lanes, stored, .. })) => {
                    lent.finish().await?;
                    self.shared.lanes.remember(lanes);
                    if stored {
                        self.wake();
                    }
                    return Ok(answers);
                }
                Ok(None) => lent.roll_back().await?,
                Err(error) if is_race(&error) => lent.roll_back().await?,
                Err(error) if is_missing_partition(&error) => {
                    lent.roll_back().await?;
                    keeper::provide_all(&self.shared).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(moves::overtaken(OPERATION))
    }

    /// The numbers of the messages' lanes, committed: in a transaction that goes on, a new one would hold up everybody
    /// else who accepts to its lane or claims from it.
    pub(crate) async fn lanes_of(
        &self,
        operation: &'static str,
        groups: &[AppendGroup],
    ) -> Result<HashMap<mailslot_core::stored::LaneKey, i64>, StoreError> {
        let mut lanes: Vec<_> =
            groups.iter().flat_map(|group| &group.messages).map(NewMessage::lane).collect();
        // Most are of the same lane as the one before.
        lanes.dedup();
        self.lane_numbers(operation, lanes.into_iter()).await
    }

    /// The numbers of lanes, committed.
    async fn lane_numbers<'l>(
        &self,
        operation: &'static str,
        wanted: impl Iterator<Item = (&'l mailslot_core::EndpointName, &'l mailslot_core::Contract)> + Clone,
    ) -> Result<HashMap<mailslot_core::stored::LaneKey, i64>, StoreError> {
        let known = self.shared.lanes.find(wanted.clone());
        if wanted
            .clone()
            .all(|(endpoint, contract)| known.contains_key(&(endpoint.clone(), contract.clone())))
        {
            return Ok(known);
        }
        let mut lent = self.shared.pinned.begin(operation).await?;
        let numbers = {
            let mut link = lent.link();
            lanes::number(&mut self.shared.session(&mut link, operation), wanted, &self.shared.lanes).await?
        };
        lent.finish().await?;
        self.shared.lanes.remember(numbers.clone());
        Ok(numbers)
    }

    async fn exchange_bounded(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        let Exchange { settlements, lease } = exchange;
        let plain = Plain::of(&settlements, &self.shared.leases);
        let branches = match &lease {
            Some(request) => self.branches(request).await?,
            None => Vec::new(),
        };
        let look = lease.as_ref().map(|request| self.look(request, &branches));
        let wanted = lease.as_ref().zip(look.as_ref());
        let wanted = wanted.map(|(request, look)| Wanted { request, branches: &branches, look });
        let is_plain = plain.places.iter().all(Option::is_some);
        let is_odd = self.shared.odd.load(Ordering::Relaxed);
        if !is_plain || lease.as_ref().is_some_and(|request| is_odd || request.tenant.is_some()) {
            return self.exchange_slowly(settlements, wanted.as_ref()).await;
        }
        let done = self.run_exchange(&plain, wanted.as_ref()).await?;
        plain.remember(&done.held, &self.shared.leases);
        let (places, rest) = exchange::rest(settlements, &plain, &done.held);
        let mut exchanged = Exchanged::nothing(done.now);
        exchanged.settled = vec![Settled::Applied(Status::Completed); plain.places.len()];
        if !rest.is_empty() {
            let settled = self.exchange_slowly(rest, None).await?.settled;
            for (place, settled) in places.into_iter().zip(settled) {
                exchanged.settled[place] = settled;
            }
        }
        if let Some(wanted) = wanted {
            self.claimed(wanted, done, &mut exchanged).await?;
        }
        Ok(exchanged)
    }

    async fn branches(&self, request: &LeaseRequest) -> Result<Vec<(i64, i64)>, StoreError> {
        let lanes = request.lanes.iter().map(|lane| (&lane.endpoint, &lane.contract));
        let numbers = self.lane_numbers("exchange", lanes).await?;
        Ok(exchange::branches(&exchange::lane_ids(request, &numbers)))
    }

    /// Where a claim begins. One that has to find everything, because a drain or a test relies on it, begins at the
    /// front.
    fn look(&self, request: &LeaseRequest, branches: &[(i64, i64)]) -> Look {
        if request.due_until.is_some() || self.shared.options.clock.is_some() {
            return Look::at_front(branches.len());
        }
        self.shared.hints.look(branches)
    }

    /// Another look for a claim that found nothing; see [`Hints::look_again`].
    fn look_again(&self, wanted: &Wanted<'_>) -> Option<Look> {
        self.shared.options.clock.is_none().then(|| self.shared.hints.look_again(wanted.look)).flatten()
    }

    async fn run_exchange(&self, plain: &Plain, wanted: Option<&Wanted<'_>>) -> Result<Done, StoreError> {
        let mut lent = self.shared.pinned.single("exchange").await?;
        let sql = self.shared.statements.get(queries::LEASE_EXCHANGE).clone();
        let statement = (sql, self.shared.pinned.keeps_statements());
        let done = exchange::exchange(&mut lent, statement, self.micros(), plain, wanted).await?;
        lent.finish().await?;
        if let (Some(wanted), Some(generation)) = (wanted, done.generation) {
            let slots: Vec<_> = done.taken.iter().map(|taken| taken.slot).collect();
            self.shared.leases.remember(generation, wanted.request.owner.session(), &slots);
        }
        if let Some(wanted) = wanted {
            let taken = done.taken.iter().map(|taken| (taken.slot.lane, taken.slot.priority, taken.due_at));
            self.shared.hints.took(taken);
            self.shared.hints.looked(wanted.look);
        }
        Ok(done)
    }

    /// Takes over what was claimed, and looks again where the first look was not enough.
    async fn claimed(
        &self,
        wanted: Wanted<'_>,
        mut done: Done,
        exchanged: &mut Exchanged,
    ) -> Result<(), StoreError> {
        let again = if done.taken.is_empty() && !done.odd { self.look_again(&wanted) } else { None };
        let wanted = again.as_ref().map_or(wanted, |look| Wanted { look, ..wanted });
        if again.is_some() {
            done = self.run_exchange(&Plain::default(), Some(&wanted)).await?;
        }
        if done.odd {
            self.shared.odd.store(true, Ordering::Relaxed);
            // With the look that found it: another one may begin behind it.
            let claimed = self.exchange_slowly(Vec::new(), Some(&wanted)).await?;
            let settled = std::mem::take(&mut exchanged.settled);
            *exchanged = Exchanged { settled, ..claimed };
            return Ok(());
        }
        let request = wanted.request;
        exchanged.next_due = done.next_due;
        exchanged.until = done.generation.map(|_| exchange::until(request, done.now));
        let Some(generation) = done.generation else { return Ok(()) };
        let lease = exchange::token(request, generation);
        let mut refused = Vec::new();
        for taken in done.taken {
            match taken.envelope {
                Some(Read { value: envelope, defect: None }) => exchanged.leased.push(Leased {
                    envelope,
                    attempt: taken.slot.attempt(),
                    lease,
                    due_at: instant(taken.due_at),
                }),
                unreadable => {
                    let id = unreadable.map(|read| read.value.id);
                    exchanged
                        .refused
                        .push(id.unwrap_or_else(|| mailslot_core::stored::id_of_place(taken.slot.seq)));
                    refused.push(taken.slot);
                }
            }
        }
        if !refused.is_empty() {
            self.refuse(generation, refused).await?;
        }
        Ok(())
    }

    /// Dead-letters leased messages whose rows cannot be read, so that they stop no batch. They were never begun.
    async fn refuse(&self, generation: i64, slots: Vec<Slot>) -> Result<(), StoreError> {
        const OPERATION: &str = "exchange";
        let mut lent = self.shared.pinned.begin(OPERATION).await?;
        let mut link = lent.link();
        let mut session = self.shared.session(&mut link, OPERATION);
        let now = instant(session.row(queries::CLOCK_READ, vec![self.time()]).await?.int(0));
        let mut settling = Settling::default();
        let seqs = slots.iter().map(|slot| slot.seq).collect();
        crate::leases::lock(&mut session, vec![generation], seqs, &mut settling).await?;
        let mut moves = Moves::at(now);
        for slot in &slots {
            moves.leaving(slot, Status::Leased);
            let slot = slot.with(slot.attempt().released());
            moves.end(&slot, Status::Leased, Status::DeadLettered, Some(Reason::Undecodable), None);
        }
        moves::finish(&mut session, &mut moves, &settling).await?;
        lent.finish().await?;
        self.shared.leases.settled(generation, slots.iter().map(|slot| slot.seq));
        Ok(())
    }

    /// The long way of an exchange: in a transaction, rule by rule.
    async fn exchange_slowly(
        &self,
        settlements: Vec<Settlement>,
        wanted: Option<&Wanted<'_>>,
    ) -> Result<Exchanged, StoreError> {
        const OPERATION: &str = "exchange";
        let _alone = if wanted.is_some() { Some(self.shared.long_claims.lock().await) } else { None };
        for _ in 1..RACES_MAX {
            let mut lent = self.shared.pinned.begin(OPERATION).await?;
            match self.try_exchange(&mut lent, settlements.clone(), wanted).await {
                Ok(tried) => {
                    lent.finish().await?;
                    return Ok(self.exchanged(tried, wanted.map(|wanted| wanted.request)));
                }
                Err(error) if is_race(&error) => lent.roll_back().await?,
                Err(error) => return Err(error),
            }
        }
        Err(moves::overtaken(OPERATION))
    }

    async fn try_exchange(
        &self,
        lent: &mut Lent,
        settlements: Vec<Settlement>,
        wanted: Option<&Wanted<'_>>,
    ) -> Result<Tried, StoreError> {
        let mut link = lent.link();
        let mut session = self.shared.session(&mut link, "exchange");
        let now = instant(session.row(queries::CLOCK_READ, vec![self.time()]).await?.int(0));
        let mut moves = Moves::at(now);
        let mut exchanged = Exchanged::nothing(now);
        let tokens: Vec<_> = settlements.iter().map(|one| (one.lease.generation, one.seq.0)).collect();
        let (settled, promoted) = settle::settle(&mut session, settlements, &mut moves).await?;
        exchanged.settled = settled;
        let woke = moves.woke();
        self.lower(&promoted);
        let slots = match wanted {
            Some(wanted) => self.claim_slowly(&mut session, wanted, &mut moves, &mut exchanged).await?,
            None => Vec::new(),
        };
        let promoted = moves::finish(&mut session, &mut moves, &Settling::default()).await?;
        self.lower(&promoted);
        Ok(Tried { exchanged, slots, tokens, woke })
    }

    async fn claim_slowly(
        &self,
        session: &mut Session<'_>,
        wanted: &Wanted<'_>,
        moves: &mut Moves,
        exchanged: &mut Exchanged,
    ) -> Result<Vec<Slot>, StoreError> {
        let slots = wanted.claim(session, moves, exchanged).await?;
        self.shared.hints.looked(wanted.look);
        if !exchanged.found_nothing() {
            return Ok(slots);
        }
        let Some(look) = self.look_again(wanted) else { return Ok(slots) };
        let slots = Wanted { look: &look, ..*wanted }.claim(session, moves, exchanged).await?;
        self.shared.hints.looked(&look);
        Ok(slots)
    }

    /// What follows once a long exchange is committed.
    fn exchanged(&self, tried: Tried, lease: Option<&LeaseRequest>) -> Exchanged {
        let Tried { exchanged, slots, tokens, woke } = tried;
        for ((generation, seq), settled) in tokens.into_iter().zip(&exchanged.settled) {
            match settled {
                Settled::Applied(_) => self.shared.leases.settled(generation, [seq]),
                Settled::LeaseLost => self.shared.leases.forget(generation),
            }
        }
        if let (Some(leased), Some(request)) = (exchanged.leased.first(), lease) {
            self.shared.leases.remember(leased.lease.generation, request.owner.session(), &slots);
        }
        // What was taken for one tenant says nothing of the others.
        if lease.is_some_and(|request| request.tenant.is_none()) {
            let due = exchanged.leased.iter().map(|leased| leased.due_at.as_microsecond());
            self.shared.hints.took(slots.iter().zip(due).map(|(slot, due)| (slot.lane, slot.priority, due)));
        }
        if lease.is_some() {
            let odd = exchanged.held_back > 0
                || !exchanged.refused.is_empty()
                || slots.iter().any(|slot| slot.attempt as usize > mailslot_core::limits::SUSPECT_AFTER);
            self.shared.odd.store(odd, Ordering::Relaxed);
        }
        if woke {
            self.wake();
        }
        exchanged
    }

    /// New heads of sessions may be due before what claims have seen.
    pub(crate) fn lower(&self, promoted: &[Promoted]) {
        for Promoted { lane, priority, due_at } in promoted {
            self.shared.hints.lower(*lane, *priority, *due_at);
        }
    }

    async fn recover_bounded(&self, limit: usize) -> Result<Recovered, StoreError> {
        const OPERATION: &str = "recover";
        let mut lent = self.shared.free.single(OPERATION).await?;
        let any = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            session.row(queries::LEASE_ANY_EXPIRED, vec![self.time()]).await?.int(0)
        };
        lent.finish().await?;
        if any == 0 {
            return Ok(Recovered::default());
        }
        let mut lent = self.shared.free.begin(OPERATION).await?;
        let (recovered, over, promoted) = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            let now = instant(session.row(queries::CLOCK_READ, vec![self.time()]).await?.int(0));
            let mut moves = Moves::at(now);
            let (recovered, over, mut promoted) = settle::recover(&mut session, limit, &mut moves).await?;
            promoted.extend(moves::finish(&mut session, &mut moves, &Settling::default()).await?);
            (recovered, over, promoted)
        };
        lent.finish().await?;
        for generation in over {
            self.shared.leases.forget(generation);
        }
        self.lower(&promoted);
        self.wake();
        Ok(recovered)
    }
}

/// A long exchange that is not committed yet.
struct Tried {
    exchanged: Exchanged,
    slots: Vec<Slot>,
    /// Lease and message of each settlement.
    tokens: Vec<(i64, i64)>,
    woke: bool,
}
