//! The rows of the memory store, and the one place where a row changes its state.

use super::ledger::Deliveries;
use crate::contract::Contract;
use crate::id::{Attempt, MessageId, Seq};
use crate::limits::SUSPECT_AFTER;
use crate::message::{Envelope, Fingerprint, LedgerKey};
use crate::metadata::KeyPolicy;
use crate::name::EndpointName;
use crate::outcome::{ErrorText, Handoff, OutcomeKind, OutcomeRecord, Reason};
use crate::state::{SessionStep, Status};
use crate::store::{HandoffResult, Owner, RedriveWalk, SessionRef};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Endpoint and contract: which workers may take a message.
pub(super) type LaneKey = (EndpointName, Contract);
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
    pub(super) sessions: BTreeMap<SessionRef, Session>,
    pub(super) redrives: BTreeMap<i64, RedriveWalk>,
    pub(super) deliveries: Deliveries,
    /// Settlements of handoffs that came too early, and until when each is kept.
    pub(super) kept_handoffs: BTreeMap<MessageId, (HandoffResult, Timestamp)>,
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
    pub(super) fn session_id(&self) -> Option<SessionRef> {
        let key = self.envelope.session.clone()?;
        Some(SessionRef {
            endpoint: self.envelope.endpoint.clone(),
            tenant: self.envelope.tenant.clone(),
            key,
        })
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
    pub(super) fn is_suspect(&self) -> bool {
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
    pub(super) fn count(&mut self, status: Status, by: i64) {
        let count = self.tally.entry(status).or_default();
        *count = count.saturating_add_signed(by);
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
