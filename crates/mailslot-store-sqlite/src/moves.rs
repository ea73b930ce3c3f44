//! How messages move: what a transaction decided about each message is gathered here and written set by set, so that
//! a batch of a thousand costs as many statements as one message.
//!
//! Who gathers takes the messages out of the place where they were (see [`Moves::leaving`]); [`Moves::write`] puts
//! them where they go, and lets sessions, keys and counters follow.

use crate::error::During;
use crate::ledger;
use crate::queries;
use crate::row::{UNTIL_FINISHED, code_of_kind, json, micros};
use jiff::{SignedDuration, Timestamp};
use mailslot_core::state::SessionStep;
use mailslot_core::{Attempt, Effect, ErrorText, Handoff, OutcomeKind, Reason, Status, StoreError};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use std::collections::BTreeMap;
use std::time::Duration;

/// A message in a place, with all that a move needs. Read from a JSON array, field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Slot {
    pub(crate) seq: i64,
    pub(crate) lane: i64,
    pub(crate) priority: i64,
    pub(crate) generation: u32,
    pub(crate) attempt: u32,
    /// The session whose head it is, or behind whose head it waits.
    pub(crate) session: Option<i64>,
    pub(crate) key_policy: i64,
}

impl Slot {
    pub(crate) fn attempt(&self) -> Attempt {
        Attempt { generation: self.generation, number: self.attempt }
    }

    pub(crate) fn with(self, attempt: Attempt) -> Self {
        Self { generation: attempt.generation, attempt: attempt.number, ..self }
    }
}

#[derive(Debug, Serialize)]
struct OutcomeRow(i64, u32, u32, i64, Option<&'static str>, Option<String>, bool);

/// A pending message as `ready/insert.sql` takes it.
#[derive(Debug, Serialize)]
pub(crate) struct ReadyRow(
    pub(crate) i64,
    pub(crate) i64,
    pub(crate) i64,
    pub(crate) i64,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) Option<i64>,
    pub(crate) i64,
);

#[derive(Debug, Serialize)]
struct SuspendedRow(i64, i64, i64, u32, u32, Option<i64>, i64, String);

/// What is to be written. See the module.
#[derive(Debug)]
pub(crate) struct Moves {
    now: Timestamp,
    leaving: BTreeMap<Status, Vec<i64>>,
    /// Leased messages that end as a plain success.
    completed: Vec<i64>,
    outcomes: Vec<OutcomeRow>,
    ready: Vec<ReadyRow>,
    suspended: Vec<SuspendedRow>,
    released: Vec<(i64, i64)>,
    freed: Vec<i64>,
    tally: BTreeMap<(i64, Status), i64>,
    /// Whether messages became leasable, now or later.
    woke: bool,
}

impl Moves {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            now,
            leaving: BTreeMap::new(),
            completed: Vec::new(),
            outcomes: Vec::new(),
            ready: Vec::new(),
            suspended: Vec::new(),
            released: Vec::new(),
            freed: Vec::new(),
            tally: BTreeMap::new(),
            woke: false,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn woke(&self) -> bool {
        self.woke
    }

    /// Takes a message out of the place where it stands.
    pub(crate) fn leaving(&mut self, slot: &Slot, from: Status) {
        self.leaving.entry(from).or_default().push(slot.seq);
        self.count(slot.lane, from, -1);
    }

    pub(crate) fn count(&mut self, lane: i64, status: Status, by: i64) {
        *self.tally.entry((lane, status)).or_default() += by;
    }

    /// Moves a leased message as the rule says. Returns where it stands then.
    pub(crate) fn apply(&mut self, slot: Slot, effect: Effect, error: Option<ErrorText>) -> Status {
        self.leaving(&slot, Status::Leased);
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
                self.suspend(&slot, &handoff);
                Status::Suspended
            }
            Effect::End { status, reason } => {
                self.end(&slot, Status::Leased, status, reason, error);
                status
            }
        }
    }

    /// Makes a message pending.
    pub(crate) fn pend(&mut self, slot: Slot, due_at: Timestamp) {
        self.count(slot.lane, Status::Pending, 1);
        self.woke = true;
        let Slot { seq, lane, priority, generation, attempt, session, key_policy } = slot;
        let due_at = micros(due_at);
        self.ready.push(ReadyRow(seq, lane, priority, due_at, generation, attempt, session, key_policy));
    }

    fn suspend(&mut self, slot: &Slot, handoff: &Handoff) {
        self.count(slot.lane, Status::Suspended, 1);
        let handoff = serde_json::to_string(handoff).expect("texts and a time always have a JSON form");
        let &Slot { seq, lane, priority, generation, attempt, session, key_policy } = slot;
        let row = SuspendedRow(seq, lane, priority, generation, attempt, session, key_policy, handoff);
        self.suspended.push(row);
    }

    /// Ends a message that left `from`, and lets its session and key follow.
    pub(crate) fn end(
        &mut self,
        slot: &Slot,
        from: Status,
        status: Status,
        reason: Option<Reason>,
        error: Option<ErrorText>,
    ) {
        let kind = OutcomeKind::of_end(status).expect("only a terminal state ends a message");
        if (from, kind, reason, &error) == (Status::Leased, OutcomeKind::Completed, None, &None) {
            self.completed.push(slot.seq);
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
    pub(crate) fn leave_session(&mut self, slot: &Slot, from: Status) {
        if let (Some(session), true) = (slot.session, from != Status::Parked) {
            self.released.push((session, slot.seq));
        }
    }

    pub(crate) fn free_key(&mut self, seq: i64) {
        self.freed.push(seq);
    }

    pub(crate) fn record(
        &mut self,
        slot: &Slot,
        kind: OutcomeKind,
        reason: Option<Reason>,
        error: Option<ErrorText>,
    ) {
        self.outcomes.push(OutcomeRow(
            slot.seq,
            slot.generation,
            slot.attempt,
            code_of_kind(kind),
            reason.map(Reason::as_str),
            error.map(String::from),
            kind.end().is_some(),
        ));
    }

    /// Writes everything but the counters, so that more may be gathered; [`Moves::finish`] writes those.
    pub(crate) async fn write(
        &mut self,
        db: &mut SqliteConnection,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        if !self.completed.is_empty() {
            // Before they leave their place: the statement takes their attempts from there.
            let seqs = json(&std::mem::take(&mut self.completed));
            let insert = sqlx::query(queries::OUTCOME_INSERT_COMPLETED).bind(seqs).bind(micros(self.now));
            insert.execute(&mut *db).await.during(operation)?;
        }
        for (status, seqs) in std::mem::take(&mut self.leaving) {
            let statement = match status {
                Status::Pending => queries::READY_DELETE,
                Status::Leased => queries::LEASE_MEMBER_DELETE,
                Status::Parked => queries::PARKED_DELETE,
                Status::Suspended => queries::SUSPENDED_DELETE,
                Status::Completed | Status::Skipped | Status::DeadLettered | Status::Cancelled => {
                    queries::OUTCOME_REOPEN
                }
            };
            sqlx::query(statement).bind(json(&seqs)).execute(&mut *db).await.during(operation)?;
        }
        if !self.outcomes.is_empty() {
            let rows = json(&std::mem::take(&mut self.outcomes));
            let insert = sqlx::query(queries::OUTCOME_INSERT).bind(rows).bind(micros(self.now));
            insert.execute(&mut *db).await.during(operation)?;
        }
        if !self.ready.is_empty() {
            let rows = json(&std::mem::take(&mut self.ready));
            sqlx::query(queries::READY_INSERT).bind(rows).execute(&mut *db).await.during(operation)?;
        }
        if !self.suspended.is_empty() {
            let rows = json(&std::mem::take(&mut self.suspended));
            sqlx::query(queries::SUSPENDED_INSERT).bind(rows).execute(&mut *db).await.during(operation)?;
        }
        if !self.freed.is_empty() {
            ledger::free_keys(db, &std::mem::take(&mut self.freed), operation).await?;
        }
        if !self.released.is_empty() {
            self.hand_sessions_on(db, operation).await?;
        }
        Ok(())
    }

    /// Writes everything.
    pub(crate) async fn finish(
        &mut self,
        db: &mut SqliteConnection,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        self.write(db, operation).await?;
        let changed = std::mem::take(&mut self.tally).into_iter().filter(|(_, by)| *by != 0);
        let rows: Vec<_> = changed.map(|((lane, status), by)| (lane, status.as_str(), by)).collect();
        if !rows.is_empty() {
            sqlx::query(queries::TALLY_ADD).bind(json(&rows)).execute(&mut *db).await.during(operation)?;
        }
        Ok(())
    }

    /// In each session whose head ended, the first that waits becomes the head; without one the session is forgotten.
    async fn hand_sessions_on(
        &mut self,
        db: &mut SqliteConnection,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        let released = std::mem::take(&mut self.released);
        let pairs = json(&released);
        let delete = sqlx::query(queries::SESSION_DELETE_RELEASED).bind(pairs.clone());
        let forgotten = delete.execute(&mut *db).await.during(operation)?.rows_affected();
        if forgotten >= released.len() as u64 {
            return Ok(());
        }
        let advance = sqlx::query_as(queries::SESSION_ADVANCE).bind(pairs);
        let heads: Vec<(i64, i64)> = advance.fetch_all(&mut *db).await.during(operation)?;
        if heads.is_empty() {
            return Ok(());
        }
        let promote = sqlx::query_scalar(queries::PARKED_PROMOTE).bind(json(&heads));
        let lanes: Vec<i64> = promote.fetch_all(&mut *db).await.during(operation)?;
        for lane in lanes {
            self.count(lane, Status::Parked, -1);
            self.count(lane, Status::Pending, 1);
        }
        let seqs: Vec<_> = heads.iter().map(|(_, seq)| *seq).collect();
        sqlx::query(queries::PARKED_DELETE).bind(json(&seqs)).execute(&mut *db).await.during(operation)?;
        self.woke = true;
        Ok(())
    }
}

pub(crate) fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}
