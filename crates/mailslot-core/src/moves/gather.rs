//! Gathering what moves.

use super::slot::Slot;
use crate::outcome::{Effect, ErrorText, Handoff, OutcomeKind, Reason};
use crate::state::{SessionStep, Status};
use crate::stored::{UNTIL_FINISHED, code_of_kind, later, micros};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What a transaction is to write. Who gathers takes each message out of the place where it was
/// ([`Moves::leaving`]) and says where it goes; the store writes the sets, in the order of the fields, and empties them
/// by [`std::mem::take`], so that more may be gathered after a write.
#[derive(Debug)]
pub struct Moves {
    /// Leased messages that end as a plain success: outcome `Completed`, no reason, no error. They are in `leaving` too.
    pub completed: Vec<Slot>,
    /// Messages by the place that they leave. From a terminal one: their last outcome is no longer where they stand.
    pub leaving: BTreeMap<Status, Vec<Slot>>,
    /// Outcomes to append, but for `completed`.
    pub outcomes: Vec<OutcomeRow>,
    /// Messages that become pending, and from when they are due, in microseconds.
    pub ready: Vec<(Slot, i64)>,
    /// Messages that wait for a handoff, and its JSON form.
    pub suspended: Vec<(Slot, String)>,
    /// Messages whose idempotency key becomes free, as far as they still hold it.
    pub freed: Vec<i64>,
    /// Sessions whose head left, and that head: the first that waits becomes the head (see [`Moves::promoted`]), and
    /// without one the session is forgotten. A head that is no longer the head changes nothing.
    pub released: Vec<(i64, i64)>,
    /// By how much the counters change. Written last; see [`Moves::take_tally`].
    pub tally: BTreeMap<(i64, Status), i64>,
    now: Timestamp,
    woke: bool,
}

/// An outcome to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeRow {
    /// Whose.
    pub seq: i64,
    /// How often the message was requeued.
    pub generation: u32,
    /// How often it was leased since then.
    pub attempt: u32,
    /// See [`code_of_kind`].
    pub kind: i64,
    /// Why.
    pub reason: Option<&'static str>,
    /// What the handler said.
    pub error: Option<String>,
    /// Whether it ends the message.
    pub is_end: bool,
}

impl Moves {
    /// Nothing yet, for a transaction at this time.
    pub fn at(now: Timestamp) -> Self {
        Self {
            completed: Vec::new(),
            leaving: BTreeMap::new(),
            outcomes: Vec::new(),
            ready: Vec::new(),
            suspended: Vec::new(),
            freed: Vec::new(),
            released: Vec::new(),
            tally: BTreeMap::new(),
            now,
            woke: false,
        }
    }

    /// The time of the transaction.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether messages became leasable, now or later.
    pub fn woke(&self) -> bool {
        self.woke
    }

    /// The counters that change.
    pub fn take_tally(&mut self) -> impl Iterator<Item = ((i64, Status), i64)> + use<> {
        std::mem::take(&mut self.tally).into_iter().filter(|(_, by)| *by != 0)
    }

    /// Takes a message out of the place where it stands.
    pub fn leaving(&mut self, slot: &Slot, from: Status) {
        self.leaving.entry(from).or_default().push(*slot);
        self.count(slot.lane, from, -1);
    }

    /// Counts messages of a lane in a place.
    pub fn count(&mut self, lane: i64, status: Status, by: i64) {
        *self.tally.entry((lane, status)).or_default() += by;
    }

    /// Moves a leased message as the rule says. Returns where it stands then.
    pub fn apply(&mut self, slot: Slot, effect: Effect, error: Option<ErrorText>) -> Status {
        self.apply_from(Status::Leased, slot, effect, error)
    }

    /// As [`apply`](Self::apply), for a message that stands elsewhere.
    pub(super) fn apply_from(
        &mut self,
        from: Status,
        slot: Slot,
        effect: Effect,
        error: Option<ErrorText>,
    ) -> Status {
        self.leaving(&slot, from);
        match effect {
            Effect::Return { after, give_back, record } => {
                if let Some((kind, reason)) = record {
                    self.record(&slot, kind, Some(reason), error);
                }
                let attempt = if give_back { slot.attempt().released() } else { slot.attempt() };
                self.pend(slot.with(attempt), later(self.now, after));
                Status::Pending
            }
            Effect::Suspend(handoff) => {
                self.record(&slot, OutcomeKind::Suspended, None, error);
                self.suspend(slot, &handoff);
                Status::Suspended
            }
            Effect::End { status, reason } => {
                self.end(&slot, from, status, reason, error);
                status
            }
        }
    }

    /// Makes a message pending.
    pub fn pend(&mut self, slot: Slot, due_at: Timestamp) {
        self.count(slot.lane, Status::Pending, 1);
        self.woke = true;
        self.ready.push((slot, micros(due_at)));
    }

    /// Lets a message wait for its handoff.
    pub fn suspend(&mut self, slot: Slot, handoff: &Handoff) {
        self.count(slot.lane, Status::Suspended, 1);
        self.suspended.push((slot, json(handoff)));
    }

    /// Ends a message that left `from`, and lets its session and key follow.
    ///
    /// # Panics
    /// `status` is no terminal one.
    pub fn end(
        &mut self,
        slot: &Slot,
        from: Status,
        status: Status,
        reason: Option<Reason>,
        error: Option<ErrorText>,
    ) {
        let kind = OutcomeKind::of_end(status).expect("only a terminal state ends a message");
        if (from, kind, reason, &error) == (Status::Leased, OutcomeKind::Completed, None, &None) {
            self.completed.push(*slot);
        } else {
            self.record(slot, kind, reason, error);
        }
        self.count(slot.lane, status, 1);
        if status.session_step() == SessionStep::Release {
            if slot.key_policy == UNTIL_FINISHED {
                self.free_key(slot.seq);
            }
            self.leave_session(slot, from);
        }
    }

    /// Hands the session on if the message was its head. One that waited was only taken out of the queue.
    pub fn leave_session(&mut self, slot: &Slot, from: Status) {
        if let (Some(session), true) = (slot.session, from != Status::Parked) {
            self.released.push((session, slot.seq));
        }
    }

    /// Counts a parked message of a lane that the store made the head of its session, and so pending.
    pub fn promoted(&mut self, lane: i64) {
        self.count(lane, Status::Parked, -1);
        self.count(lane, Status::Pending, 1);
        self.woke = true;
    }

    /// Frees the idempotency key of a message.
    pub fn free_key(&mut self, seq: i64) {
        self.freed.push(seq);
    }

    /// Records what an attempt ended in.
    pub fn record(
        &mut self,
        slot: &Slot,
        kind: OutcomeKind,
        reason: Option<Reason>,
        error: Option<ErrorText>,
    ) {
        self.outcomes.push(OutcomeRow {
            seq: slot.seq,
            generation: slot.generation,
            attempt: slot.attempt,
            kind: code_of_kind(kind),
            reason: reason.map(Reason::as_str),
            error: error.map(String::from),
            is_end: kind.end().is_some(),
        });
    }
}

fn json(handoff: &Handoff) -> String {
    serde_json::to_string(handoff).expect("texts and a time always have a JSON form")
}
