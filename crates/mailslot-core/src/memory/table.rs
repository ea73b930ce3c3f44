//! The rows of the memory store and how they move: accept, lease, settle, recover.

use crate::contract::Contract;
use crate::id::{Attempt, MessageId, Seq};
use crate::limits::{PARKED_PER_SESSION_MAX, SUSPECT_AFTER};
use crate::message::{Envelope, Fingerprint, LedgerKey, NewMessage};
use crate::metadata::{Idempotency, KeyPolicy};
use crate::name::{EndpointName, SessionKey, TenantName};
use crate::outcome::{
    Disposition, Effect, ErrorText, Handoff, OutcomeKind, OutcomeRecord, Reason, Settlement, effect_of_expiry,
};
use crate::receipt::{AcceptOutcome, Receipt};
use crate::state::{SessionStep, Status};
use crate::store::{
    AppendGroup, Appended, Candidate, Exchange, Exchanged, ExtendRequest, Extended, LaneRequest,
    LeaseRequest, LeaseToken, Leased, LedgerEntry, Owner, Pick, Planned, Recovered, Redrive, Settled,
    pick_candidates, plan_append,
};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Endpoint and contract: which workers may take a message.
pub(super) type LaneKey = (EndpointName, Contract);
pub(super) type SessionId = (EndpointName, Option<TenantName>, SessionKey);
type DueSet = BTreeSet<(Timestamp, Seq)>;

/// Everything that the store holds.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: BTreeMap<Seq, Row>,
    pub(super) ids: HashMap<MessageId, Vec<Seq>>,
    pub(super) ledger: HashMap<LedgerKey, (Seq, Fingerprint)>,
    /// The number of each lane that was ever used.
    pub(super) lane_numbers: HashMap<LaneKey, usize>,
    pub(super) lanes: Vec<Lane>,
    pub(super) leases: BTreeMap<i64, Lease>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) redrives: BTreeMap<i64, (Redrive, Seq, Seq)>,
    pub(super) last_seq: i64,
    pub(super) last_generation: i64,
}

/// The messages of one endpoint and contract.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) key: LaneKey,
    /// Pending ones by class, in due order.
    pub(super) ready: [DueSet; 3],
    /// How many stand where.
    pub(super) tally: BTreeMap<Status, u64>,
}

/// A message and where it is.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) envelope: Envelope,
    /// The number of its lane.
    pub(super) lane: usize,
    pub(super) id_supplied: bool,
    pub(super) key_policy: KeyPolicy,
    pub(super) attempt: Attempt,
    pub(super) place: Place,
    pub(super) cancel_requested: bool,
    pub(super) history: Vec<OutcomeRecord>,
}

/// Where a message is, is its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Ready { due_at: Timestamp },
    Leased { generation: i64 },
    Parked { due_at: Timestamp },
    Suspended(Handoff),
    Ended { status: Status, at: Timestamp },
}

impl Place {
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Ready { .. } => Status::Pending,
            Self::Leased { .. } => Status::Leased,
            Self::Parked { .. } => Status::Parked,
            Self::Suspended(_) => Status::Suspended,
            Self::Ended { status, .. } => *status,
        }
    }
}

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) owner: Owner,
    pub(super) until: Timestamp,
    pub(super) members: BTreeSet<Seq>,
}

/// A session with a head. One without is forgotten.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) head: Seq,
    pub(super) parked: BTreeSet<Seq>,
}

impl Row {
    pub(super) fn session_id(&self) -> Option<SessionId> {
        let key = self.envelope.session.clone()?;
        Some((self.envelope.endpoint.clone(), self.envelope.tenant.clone(), key))
    }

    /// Its class as an index.
    pub(super) fn class(&self) -> usize {
        usize::from(self.envelope.priority.rank())
    }

    fn key(&self) -> Option<LedgerKey> {
        let key = self.envelope.idempotency_key.as_ref()?;
        Some(LedgerKey::of_key(self.envelope.tenant.as_ref(), key))
    }

    pub(super) fn ledger_keys(&self) -> impl Iterator<Item = LedgerKey> + use<> {
        let id = self.id_supplied.then(|| LedgerKey::of_id(self.envelope.tenant.as_ref(), self.envelope.id));
        id.into_iter().chain(self.key())
    }

    /// Whether the last leases of this generation ran out, one after the other.
    fn is_suspect(&self) -> bool {
        let generation = self.attempt.generation;
        let expired = |outcome: &&OutcomeRecord| {
            outcome.kind == OutcomeKind::Expired && outcome.attempt.generation == generation
        };
        self.history.iter().rev().take_while(expired).count() >= SUSPECT_AFTER
    }

    pub(super) fn record(
        &mut self,
        kind: OutcomeKind,
        reason: Option<Reason>,
        error: Option<ErrorText>,
        at: Timestamp,
    ) {
        self.history.push(OutcomeRecord { attempt: self.attempt, kind, reason, error, at });
    }
}

impl Lane {
    fn count(&mut self, status: Status, by: i64) {
        let count = self.tally.entry(status).or_default();
        *count = count.saturating_add_signed(by);
    }
}

pub(super) fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}

// Accept.
impl Table {
    pub(super) fn append(&mut self, groups: Vec<AppendGroup>, now: Timestamp) -> Vec<Vec<Appended>> {
        let keys = groups.iter().flat_map(|group| &group.messages).flat_map(NewMessage::ledger_keys);
        let known: HashMap<_, _> = keys.filter_map(|key| Some((key, self.ledger_entry(key)?))).collect();
        let plan = plan_append(&groups, &known, now, |message| self.room(message));
        for (group, planned) in groups.into_iter().zip(&plan.groups) {
            for (message, planned) in group.messages.into_iter().zip(planned) {
                if let Planned::Insert(_) = planned {
                    self.insert(message, now);
                }
            }
        }
        plan.into_answers()
    }

    fn ledger_entry(&self, key: LedgerKey) -> Option<LedgerEntry> {
        let (seq, fingerprint) = *self.ledger.get(&key)?;
        let row = self.rows.get(&seq)?;
        let envelope = &row.envelope;
        let receipt = Receipt {
            id: envelope.id,
            contract: envelope.contract.clone(),
            endpoint: envelope.endpoint.clone(),
            accepted_at: envelope.accepted_at,
            tenant: envelope.tenant.clone(),
            trace: envelope.trace.clone(),
            outcome: AcceptOutcome::AlreadyAccepted { status: row.place.status() },
        };
        Some(LedgerEntry { fingerprint, receipt })
    }

    /// How many messages may still join this message's session; the one that becomes its head counts too.
    fn room(&self, message: &NewMessage) -> u64 {
        let Some(key) = message.metadata.session.clone() else { return u64::MAX };
        let id = (message.metadata.endpoint.clone(), message.metadata.tenant.clone(), key);
        let parked = self.sessions.get(&id).map(|session| session.parked.len() as u64);
        parked.map_or(PARKED_PER_SESSION_MAX + 1, |parked| PARKED_PER_SESSION_MAX.saturating_sub(parked))
    }

    fn insert(&mut self, message: NewMessage, now: Timestamp) {
        self.last_seq += 1;
        let seq = Seq(self.last_seq);
        let keys: Vec<_> = message.ledger_keys().collect();
        if !keys.is_empty() {
            let fingerprint = message.fingerprint();
            self.ledger.extend(keys.into_iter().map(|key| (key, (seq, fingerprint))));
        }
        self.ids.entry(message.id).or_default().push(seq);
        let due_at = message.due_at(now);
        let (idempotency_key, key_policy) = match message.metadata.idempotency {
            Idempotency::None => (None, KeyPolicy::default()),
            Idempotency::Keyed { key, policy, .. } => (Some(key), policy),
        };
        let envelope = Envelope {
            seq,
            id: message.id,
            endpoint: message.metadata.endpoint,
            contract: message.contract,
            payload: message.payload,
            tenant: message.metadata.tenant,
            session: message.metadata.session,
            idempotency_key,
            trace: message.metadata.trace,
            priority: message.metadata.priority,
            headers: message.metadata.headers,
            accepted_at: now,
        };
        let row = Row {
            lane: self.lane_number(&envelope),
            envelope,
            id_supplied: message.id_supplied,
            key_policy,
            attempt: Attempt::FIRST,
            place: Place::Parked { due_at },
            cancel_requested: false,
            history: Vec::new(),
        };
        let first = self.join_session(&row);
        self.lanes[row.lane].count(Status::Parked, 1);
        self.rows.insert(seq, row);
        if first {
            self.place(seq, Place::Ready { due_at });
        }
    }

    fn lane_number(&mut self, envelope: &Envelope) -> usize {
        let key = (envelope.endpoint.clone(), envelope.contract.clone());
        let lanes = &mut self.lanes;
        *self.lane_numbers.entry(key.clone()).or_insert_with(|| {
            lanes.push(Lane { key, ready: Default::default(), tally: BTreeMap::new() });
            lanes.len() - 1
        })
    }

    /// Whether the message is the head of its session now, or has none.
    fn join_session(&mut self, row: &Row) -> bool {
        let Some(id) = row.session_id() else { return true };
        let seq = row.envelope.seq;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.parked.insert(seq);
            return false;
        }
        self.sessions.insert(id, Session { head: seq, parked: BTreeSet::new() });
        true
    }
}

// Moving a row: the one place where a row changes its state.
impl Table {
    pub(super) fn row(&self, seq: Seq) -> &Row {
        self.rows.get(&seq).expect("every indexed message has a row")
    }

    pub(super) fn row_mut(&mut self, seq: Seq) -> &mut Row {
        self.rows.get_mut(&seq).expect("every indexed message has a row")
    }

    /// Puts a message elsewhere: indexes and counts follow.
    pub(super) fn place(&mut self, seq: Seq, place: Place) {
        self.unindex(seq);
        let row = self.rows.get_mut(&seq).expect("every indexed message has a row");
        let lane = &mut self.lanes[row.lane];
        lane.count(place.status(), 1);
        if let Place::Ready { due_at } = place {
            lane.ready[row.class()].insert((due_at, seq));
        }
        row.cancel_requested &= matches!(place, Place::Leased { .. });
        row.place = place;
    }

    /// Takes a message out of the indexes and counts of the place where it is.
    pub(super) fn unindex(&mut self, seq: Seq) {
        let row = self.row(seq);
        let (number, class, status) = (row.lane, row.class(), row.place.status());
        match row.place {
            Place::Ready { due_at } => {
                self.lanes[number].ready[class].remove(&(due_at, seq));
            }
            Place::Leased { generation } => self.leave_lease(generation, seq),
            Place::Parked { .. } | Place::Suspended(_) | Place::Ended { .. } => {}
        }
        self.lanes[number].count(status, -1);
    }

    fn leave_lease(&mut self, generation: i64, seq: Seq) {
        let Some(lease) = self.leases.get_mut(&generation) else { return };
        lease.members.remove(&seq);
        if lease.members.is_empty() {
            self.leases.remove(&generation);
        }
    }

    /// Ends a message and lets its session and key follow.
    pub(super) fn end(
        &mut self,
        seq: Seq,
        status: Status,
        reason: Option<Reason>,
        error: Option<ErrorText>,
        now: Timestamp,
    ) {
        let kind = OutcomeKind::of_end(status).expect("only a terminal state ends a message");
        self.row_mut(seq).record(kind, reason, error, now);
        let parked = matches!(self.row(seq).place, Place::Parked { .. });
        self.place(seq, Place::Ended { status, at: now });
        if status.session_step() == SessionStep::Release {
            if self.row(seq).key_policy == KeyPolicy::UntilFinished {
                self.free_key(seq);
            }
            self.leave_session(seq, parked);
        }
    }

    pub(super) fn free_key(&mut self, seq: Seq) {
        let Some(key) = self.row(seq).key() else { return };
        if self.ledger.get(&key).is_some_and(|(holder, _)| *holder == seq) {
            self.ledger.remove(&key);
        }
    }

    /// Takes a message out of its session; if it was the head, the next one takes its place.
    pub(super) fn leave_session(&mut self, seq: Seq, parked: bool) {
        let Some(id) = self.row(seq).session_id() else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if parked {
            session.parked.remove(&seq);
            return;
        }
        if session.head != seq {
            return;
        }
        let Some(next) = session.parked.pop_first() else {
            self.sessions.remove(&id);
            return;
        };
        session.head = next;
        let Place::Parked { due_at } = self.row(next).place else { return };
        self.place(next, Place::Ready { due_at });
    }
}

// Lease and settle.
impl Table {
    pub(super) fn exchange(&mut self, exchange: Exchange, now: Timestamp) -> (Exchanged, bool) {
        let settled: Vec<_> =
            exchange.settlements.into_iter().map(|settlement| self.settle(settlement, now)).collect();
        // A settlement may free the next message of a session or return one for others.
        let wake = !settled.is_empty();
        let mut exchanged = Exchanged {
            settled,
            leased: Vec::new(),
            refused: Vec::new(),
            held_back: 0,
            now,
            until: None,
            next_due: None,
        };
        if let Some(request) = exchange.lease {
            self.lease(&request, now, &mut exchanged);
        }
        (exchanged, wake)
    }

    fn settle(&mut self, settlement: Settlement, now: Timestamp) -> Settled {
        let Settlement { lease, seq, attempt, disposition, error } = settlement;
        if !self.holds(lease, seq, attempt) {
            return Settled::LeaseLost;
        }
        let effect = Disposition::effect(&disposition, self.row(seq).cancel_requested);
        self.apply(seq, effect, error, now);
        Settled::Applied(self.row(seq).place.status())
    }

    fn holds(&self, token: LeaseToken, seq: Seq, attempt: Attempt) -> bool {
        let held = self
            .leases
            .get(&token.generation)
            .is_some_and(|lease| lease.owner.session() == token.owner && lease.members.contains(&seq));
        held && self.rows.get(&seq).is_some_and(|row| row.attempt == attempt)
    }

    fn apply(&mut self, seq: Seq, effect: Effect, error: Option<ErrorText>, now: Timestamp) {
        match effect {
            Effect::Return { after, give_back, record } => {
                let row = self.row_mut(seq);
                if let Some((kind, reason)) = record {
                    row.record(kind, Some(reason), error, now);
                }
                if give_back {
                    row.attempt = row.attempt.released();
                }
                self.place(seq, Place::Ready { due_at: later(now, after) });
            }
            Effect::Suspend(handoff) => {
                self.row_mut(seq).record(OutcomeKind::Suspended, None, error, now);
                self.place(seq, Place::Suspended(handoff));
            }
            Effect::End { status, reason } => self.end(seq, status, reason, error, now),
        }
    }

    fn lease(&mut self, request: &LeaseRequest, now: Timestamp, exchanged: &mut Exchanged) {
        let due_until = request.due_until.map_or(now, |until| until.min(now));
        let mut attempts_max: HashMap<(&EndpointName, &Contract), u32> = HashMap::new();
        for lane in &request.lanes {
            attempts_max.insert((&lane.endpoint, &lane.contract), lane.attempts_max);
        }
        // Exhausted messages make room for others, so the claim goes on until it is full or nothing is due.
        while exchanged.leased.len() < request.limit {
            let wanted = request.limit - exchanged.leased.len();
            let pick = self.pick(request, due_until, wanted);
            exchanged.held_back = pick.held_back;
            if pick.candidates.is_empty() {
                break;
            }
            for Candidate { seq, .. } in pick.candidates {
                let row = self.row(seq);
                let lane = (&row.envelope.endpoint, &row.envelope.contract);
                if row.attempt.number >= attempts_max[&lane] {
                    exchanged.refused.push(row.envelope.id);
                    self.end(seq, Status::DeadLettered, Some(Reason::Crashed), None, now);
                } else {
                    self.lease_one(seq, request, now, exchanged);
                }
            }
        }
        if exchanged.leased.len() < request.limit {
            exchanged.next_due = self.next_due(&request.lanes, now);
        }
    }

    fn pick(&self, request: &LeaseRequest, due_until: Timestamp, wanted: usize) -> Pick {
        let holds_suspect = self.holds_suspect(&request.owner);
        let mut window = wanted;
        loop {
            let (candidates, more) = self.candidates(request, due_until, window);
            let pick = pick_candidates(candidates, wanted, holds_suspect);
            match pick.wider_window(wanted, window, more) {
                Some(wider) => window = wider,
                None => return pick,
            }
        }
    }

    /// At most `window` due messages of each lane and class, and whether there may be more.
    fn candidates(
        &self,
        request: &LeaseRequest,
        due_until: Timestamp,
        window: usize,
    ) -> (Vec<Candidate>, bool) {
        let mut candidates = Vec::new();
        let mut more = false;
        for lane in &request.lanes {
            let Some(stored) = self.lane(lane) else { continue };
            for (due, &priority) in stored.ready.iter().zip(&crate::Priority::ALL) {
                let of_tenant =
                    |seq: &Seq| request.tenant.is_none() || self.row(*seq).envelope.tenant == request.tenant;
                let due = due
                    .range(..=(due_until, Seq(i64::MAX)))
                    .filter(|(_, seq)| of_tenant(seq))
                    .take(window)
                    .map(|&(due_at, seq)| {
                        let row = self.row(seq);
                        let suspect = row.attempt.number < lane.attempts_max && row.is_suspect();
                        Candidate { seq, priority, due_at, suspect }
                    });
                let before = candidates.len();
                candidates.extend(due);
                more |= candidates.len() - before == window;
            }
        }
        (candidates, more)
    }

    fn holds_suspect(&self, owner: &Owner) -> bool {
        let held = self.leases.values().filter(|lease| lease.owner.session() == owner.session());
        held.flat_map(|lease| &lease.members).any(|&seq| self.row(seq).is_suspect())
    }

    fn lease_one(&mut self, seq: Seq, request: &LeaseRequest, now: Timestamp, exchanged: &mut Exchanged) {
        if exchanged.leased.is_empty() {
            self.last_generation += 1;
            let until = later(now, request.duration);
            let lease = Lease { owner: request.owner.clone(), until, members: BTreeSet::new() };
            self.leases.insert(self.last_generation, lease);
            exchanged.until = Some(until);
        }
        let generation = self.last_generation;
        let Place::Ready { due_at } = self.row(seq).place else { return };
        self.place(seq, Place::Leased { generation });
        if let Some(lease) = self.leases.get_mut(&generation) {
            lease.members.insert(seq);
        }
        if self.row(seq).key_policy == KeyPolicy::UntilStarted {
            self.free_key(seq);
        }
        let row = self.row_mut(seq);
        row.attempt = row.attempt.leased();
        let lease = LeaseToken { owner: request.owner.session(), generation };
        exchanged.leased.push(Leased { envelope: row.envelope.clone(), attempt: row.attempt, lease, due_at });
    }

    fn lane(&self, lane: &LaneRequest) -> Option<&Lane> {
        let number = self.lane_numbers.get(&(lane.endpoint.clone(), lane.contract.clone()))?;
        self.lanes.get(*number)
    }

    fn next_due(&self, lanes: &[LaneRequest], now: Timestamp) -> Option<Timestamp> {
        let due = lanes.iter().filter_map(|lane| self.lane(lane)).flat_map(|lane| &lane.ready);
        due.filter_map(|due| due.range((now, Seq(i64::MAX))..).next()).map(|&(due_at, _)| due_at).min()
    }

    pub(super) fn extend(&mut self, request: &ExtendRequest, now: Timestamp) -> Vec<Extended> {
        let until = later(now, request.duration);
        let mut answers = Vec::with_capacity(request.leases.len());
        for token in &request.leases {
            let lease =
                self.leases.get_mut(&token.generation).filter(|lease| lease.owner.session() == token.owner);
            let Some(lease) = lease else {
                answers.push(Extended::Lost);
                continue;
            };
            lease.until = until;
            let members = lease.members.clone();
            let cancel_requested =
                members.into_iter().filter(|&seq| self.row(seq).cancel_requested).collect();
            answers.push(Extended::Held { until, cancel_requested });
        }
        answers
    }

    pub(super) fn recover(&mut self, limit: usize, now: Timestamp) -> Recovered {
        let mut over: Vec<_> = self.leases.iter().filter(|(_, lease)| lease.until <= now).collect();
        over.sort_by_key(|(generation, lease)| (lease.until, **generation));
        let over: Vec<_> = over.into_iter().take(limit).map(|(_, lease)| lease.members.clone()).collect();
        let mut recovered = Recovered { leases: over.len() as u64, ..Recovered::default() };
        for seq in over.into_iter().flatten() {
            let effect = effect_of_expiry(self.row(seq).cancel_requested);
            match effect {
                Effect::End { .. } => recovered.cancelled += 1,
                Effect::Return { .. } | Effect::Suspend(_) => recovered.returned += 1,
            }
            self.apply(seq, effect, None, now);
        }
        recovered
    }
}
