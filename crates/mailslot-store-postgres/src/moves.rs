//! Writing what the core's [`Moves`] gathered, set by set.
//!
//! Between the reading that decided a move and the writing of it, somebody else may have moved the message. A place
//! that has fewer of the messages than it should have says so, and the transaction is rolled back and run again. Leases
//! need no such look: their rows are locked by who reads them.

use crate::leases::{self, Settling};
use crate::ledger;
use crate::link::{Param, Session};
use crate::queries::{self, Query};
use mailslot_core::moves::{Moves, OutcomeRow, Slot};
use mailslot_core::stored::{code_of_kind, micros};
use mailslot_core::{OutcomeKind, Status, StoreError, StoreErrorKind};
use std::borrow::Cow;
use std::mem::take;

/// Writes everything but the counters, so that more may be gathered; [`finish`] writes those. `settling`: the leases
/// that the leased ones among them leave.
pub(crate) async fn write(
    session: &mut Session<'_>,
    moves: &mut Moves,
    settling: &Settling,
) -> Result<Vec<Promoted>, StoreError> {
    let completed = take(&mut moves.completed);
    for (status, slots) in take(&mut moves.leaving) {
        leave(session, status, &slots, settling).await?;
    }
    write_outcomes(session, moves, &completed).await?;
    if !moves.ready.is_empty() {
        let ready = take(&mut moves.ready);
        pend(session, &ready).await?;
    }
    if !moves.suspended.is_empty() {
        let suspended = take(&mut moves.suspended);
        suspend(session, &suspended).await?;
    }
    if !moves.freed.is_empty() {
        ledger::free_keys(session, &take(&mut moves.freed)).await?;
    }
    if moves.released.is_empty() { Ok(Vec::new()) } else { hand_sessions_on(session, moves).await }
}

/// Writes everything.
pub(crate) async fn finish(
    session: &mut Session<'_>,
    moves: &mut Moves,
    settling: &Settling,
) -> Result<Vec<Promoted>, StoreError> {
    let promoted = write(session, moves, settling).await?;
    count(session, moves.take_tally()).await?;
    Ok(promoted)
}

/// Changes the counters.
pub(crate) async fn count(
    session: &mut Session<'_>,
    tally: impl Iterator<Item = ((i64, Status), i64)>,
) -> Result<(), StoreError> {
    let changed: Vec<_> = tally.collect();
    if changed.is_empty() {
        return Ok(());
    }
    let lanes = Param::ints(changed.iter().map(|((lane, _), _)| *lane));
    let statuses = Param::texts(changed.iter().map(|((_, status), _)| status.as_str()));
    let by = Param::ints(changed.iter().map(|(_, by)| *by));
    session.execute(queries::TALLY_ADD, vec![lanes, statuses, by]).await.map(|_| ())
}

async fn leave(
    session: &mut Session<'_>,
    status: Status,
    slots: &[Slot],
    settling: &Settling,
) -> Result<(), StoreError> {
    let statement = match status {
        Status::Pending => queries::READY_DELETE,
        Status::Parked => queries::PARKED_DELETE,
        Status::Suspended => queries::SUSPENDED_DELETE,
        Status::Leased => return leases::leave(session, slots, settling).await,
        // Nothing is taken back: an outcome that comes after the last one says where the message stands.
        Status::Completed | Status::Skipped | Status::DeadLettered | Status::Cancelled => return Ok(()),
    };
    delete(session, statement, slots).await
}

async fn delete(session: &mut Session<'_>, statement: Query, slots: &[Slot]) -> Result<(), StoreError> {
    let seqs = Param::ints(slots.iter().map(|slot| slot.seq));
    let deleted = session.execute(statement, vec![seqs]).await?;
    if deleted == slots.len() as u64 { Ok(()) } else { Err(overtaken(session.operation)) }
}

/// Somebody else moved a message in between: see the module.
pub(crate) fn overtaken(operation: &'static str) -> StoreError {
    let detail = "another process moved the same messages at the same time; run it again";
    StoreError::new(StoreErrorKind::Busy, operation, detail).because(Overtaken)
}

/// Marks the error of [`overtaken`].
#[derive(Debug, thiserror::Error)]
#[error("a message was no longer where it was read")]
pub(crate) struct Overtaken;

async fn write_outcomes(
    session: &mut Session<'_>,
    moves: &mut Moves,
    completed: &[Slot],
) -> Result<(), StoreError> {
    let completed = completed.iter().map(|slot| OutcomeRow {
        seq: slot.seq,
        generation: slot.generation,
        attempt: slot.attempt,
        kind: code_of_kind(OutcomeKind::Completed),
        reason: None,
        error: None,
        is_end: true,
    });
    let rows: Vec<_> = completed.chain(take(&mut moves.outcomes)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let params = vec![
        Param::Int(Some(micros(moves.now()))),
        Param::ints(rows.iter().map(|row| row.seq)),
        Param::ints(rows.iter().map(|row| i64::from(row.generation))),
        Param::ints(rows.iter().map(|row| i64::from(row.attempt))),
        Param::ints(rows.iter().map(|row| row.kind)),
        Param::Texts(Some(rows.iter().map(|row| row.reason.map(Cow::Borrowed)).collect())),
        Param::Texts(Some(rows.iter().map(|row| row.error.as_deref().map(Cow::Borrowed)).collect())),
    ];
    session.execute(queries::OUTCOME_INSERT, params).await.map(|_| ())
}

/// Arrays of the parts that every place keeps of a slot, in the order of the statements, with one of its own.
fn columns(slots: &[&Slot], due_at: Option<Vec<i64>>) -> Vec<Param<'static>> {
    let ints = |part: fn(&Slot) -> i64| Param::ints(slots.iter().map(|slot| part(slot)));
    let mut params = vec![ints(|slot| slot.seq), ints(|slot| slot.lane), ints(|slot| slot.priority)];
    params.extend(due_at.map(Param::ints));
    params.push(ints(|slot| i64::from(slot.generation)));
    params.push(ints(|slot| i64::from(slot.attempt)));
    params.push(Param::Ints(slots.iter().map(|slot| slot.session).collect()));
    params.push(ints(|slot| slot.key_policy));
    params
}

/// Puts messages into `ready`.
pub(crate) async fn pend(session: &mut Session<'_>, ready: &[(Slot, i64)]) -> Result<(), StoreError> {
    let slots: Vec<_> = ready.iter().map(|(slot, _)| slot).collect();
    let due_at = ready.iter().map(|(_, due_at)| *due_at).collect();
    session.execute(queries::READY_INSERT, columns(&slots, Some(due_at))).await.map(|_| ())
}

async fn suspend(session: &mut Session<'_>, suspended: &[(Slot, String)]) -> Result<(), StoreError> {
    let slots: Vec<_> = suspended.iter().map(|(slot, _)| slot).collect();
    let mut params = columns(&slots, None);
    params.push(Param::texts(suspended.iter().map(|(_, handoff)| handoff.as_str())));
    session.execute(queries::SUSPENDED_INSERT, params).await.map(|_| ())
}

/// A message that became the head of its session: it may be due before what claims have seen of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promoted {
    pub(crate) lane: i64,
    pub(crate) priority: i64,
    pub(crate) due_at: i64,
}

/// In each session whose head left, the first that waits becomes the head; without one the session is forgotten.
async fn hand_sessions_on(session: &mut Session<'_>, moves: &mut Moves) -> Result<Vec<Promoted>, StoreError> {
    let released = take(&mut moves.released);
    let ids = || Param::ints(released.iter().map(|(id, _)| *id));
    let heads = || Param::ints(released.iter().map(|(_, head)| *head));
    session.rows(queries::SESSION_LOCK_RELEASED, vec![ids()]).await?;
    let forgotten = session.execute(queries::SESSION_DELETE_RELEASED, vec![ids(), heads()]).await?;
    if forgotten >= released.len() as u64 {
        return Ok(Vec::new());
    }
    let next = session.rows(queries::SESSION_ADVANCE, vec![ids(), heads()]).await?;
    if next.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = Param::ints(next.iter().map(|row| row.int(0)));
    let seqs = Param::ints(next.iter().map(|row| row.int(1)));
    let rows = session.rows(queries::PARKED_PROMOTE, vec![sessions, seqs]).await?;
    let promoted =
        rows.iter().map(|row| Promoted { lane: row.int(0), priority: row.int(1), due_at: row.int(2) });
    let promoted: Vec<_> = promoted.collect();
    for Promoted { lane, .. } in &promoted {
        moves.promoted(*lane);
    }
    Ok(promoted)
}
