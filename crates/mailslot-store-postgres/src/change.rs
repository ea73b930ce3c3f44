//! What operators change. A change of many messages of one session ends where one after the other would end.
//!
//! Workers go on meanwhile. A message that moved after it was looked at stops the writing of the moves
//! ([`moves::overtaken`]), and the caller begins anew.

use crate::delivery;
use crate::leases::Settling;
use crate::ledger;
use crate::link::{Param, Row, Session};
use crate::moves;
use crate::operator::{Alteration, Outcome};
use crate::queries;
use crate::select::find;
use async_trait::async_trait;
use mailslot_core::moves::{Moves, Slot};
use mailslot_core::store::{Change, Changed, Filter, HandoffResult, Selection};
use mailslot_core::stored::RowReader;
use mailslot_core::{MessageId, Status, StoreError};

/// Where messages stand, in acceptance order.
pub(crate) async fn slots(
    session: &mut Session<'_>,
    seqs: &[i64],
) -> Result<Vec<(Slot, Status)>, StoreError> {
    let rows = session.rows(queries::MESSAGE_SLOTS, vec![Param::ints(seqs.iter().copied())]).await?;
    Ok(rows.iter().map(slot).collect())
}

/// Locks the sessions that may be handed on, as everybody does who hands sessions on or accepts into them: after the
/// leases and before the places.
pub(crate) async fn lock_sessions(
    session: &mut Session<'_>,
    slots: &[(Slot, Status)],
) -> Result<(), StoreError> {
    let sessions: Vec<_> = slots.iter().filter_map(|(slot, _)| slot.session).collect();
    if sessions.is_empty() {
        return Ok(());
    }
    session.rows(queries::SESSION_LOCK_RELEASED, vec![Param::ints(sessions)]).await.map(|_| ())
}

/// A row of `message/slots.sql` or `message/find_orphans.sql`.
pub(crate) fn slot(row: &Row) -> (Slot, Status) {
    let mut reader = RowReader::new(row);
    let attempt = reader.attempt(3);
    let slot = Slot {
        seq: row.int(0),
        lane: row.int(1),
        priority: row.int(2),
        generation: attempt.generation,
        attempt: attempt.number,
        session: reader.integer(5),
        key_policy: row.int(6),
    };
    (slot, reader.status(7))
}

/// Applies a change to what matches.
pub(crate) struct Apply<'c> {
    pub(crate) change: Change,
    pub(crate) filter: &'c Filter,
    pub(crate) limit: usize,
}

#[async_trait]
impl Alteration for Apply<'_> {
    const OPERATION: &'static str = "change";

    type Answer = Changed;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Changed> {
        if self.change == Change::Purge {
            session.row(queries::DELETION_WAIT, vec![]).await?;
        }
        let selection = Selection::to_change(self.change, self.filter, self.limit);
        let seqs = find(session, &selection).await?;
        if seqs.is_empty() {
            return Ok((Changed::default(), Vec::new()));
        }
        let mut slots = slots(session, &seqs).await?;
        // Some may have moved since they were found.
        let wanted = selection.statuses.as_deref().unwrap_or_default();
        slots.retain(|(_, status)| wanted.contains(status));
        if self.change == Change::Purge {
            return delete(session, &slots, moves).await;
        }
        let changed = move_all(session, self.change, &slots, moves).await?;
        Ok((Changed { changed }, Vec::new()))
    }
}

/// Returns how many were changed: a message that has ended by the time its lease is locked was not.
async fn move_all(
    session: &mut Session<'_>,
    change: Change,
    slots: &[(Slot, Status)],
    moves: &mut Moves,
) -> Result<u64, StoreError> {
    let mut leased = Vec::new();
    for (slot, status) in slots {
        if moves.change(change, slot, *status) {
            leased.push(slot.seq);
        }
    }
    let at_once = (slots.len() - leased.len()) as u64;
    let requested = if leased.is_empty() { 0 } else { request_cancel(session, leased).await? };
    lock_sessions(session, slots).await?;
    Ok(at_once + requested)
}

/// Returns how many were not asked for before.
async fn request_cancel(session: &mut Session<'_>, leased: Vec<i64>) -> Result<u64, StoreError> {
    let asked = session.rows(queries::LEASE_REQUEST_CANCEL, vec![Param::ints(leased)]).await?;
    Ok(asked.iter().map(|row| u64::try_from(row.int(0)).unwrap_or_default()).sum())
}

/// Requeues dead letters. The caller finishes the moves.
pub(crate) async fn requeue_all(
    session: &mut Session<'_>,
    seqs: &[i64],
    moves: &mut Moves,
) -> Result<(), StoreError> {
    for (slot, _) in slots(session, seqs).await? {
        moves.requeue(&slot);
    }
    Ok(())
}

/// Deletes messages that have ended, with their history and keys; their sessions go on. The caller finishes the moves.
pub(crate) async fn delete_ended(
    session: &mut Session<'_>,
    seqs: &[i64],
    moves: &mut Moves,
) -> Outcome<Changed> {
    let mut slots = slots(session, seqs).await?;
    slots.retain(|(_, status)| status.is_terminal());
    delete(session, &slots, moves).await
}

async fn delete(session: &mut Session<'_>, slots: &[(Slot, Status)], moves: &mut Moves) -> Outcome<Changed> {
    let seqs: Vec<_> = slots.iter().map(|(slot, _)| slot.seq).collect();
    if seqs.is_empty() {
        return Ok((Changed::default(), Vec::new()));
    }
    for (slot, status) in slots {
        moves.remove(slot, *status);
    }
    lock_sessions(session, slots).await?;
    // While the messages are there that the keys are made of.
    ledger::forget(session, &seqs).await?;
    delivery::message_goes(session, &seqs).await?;
    let promoted = moves::write(session, moves, &Settling::default()).await?;
    for statement in [queries::OUTCOME_DELETE, queries::MESSAGE_DELETE] {
        session.execute(statement, vec![Param::ints(seqs.iter().copied())]).await?;
    }
    Ok((Changed { changed: seqs.len() as u64 }, promoted))
}

/// Settles a suspended message from outside.
pub(crate) struct SettleHandoff {
    pub(crate) id: MessageId,
    pub(crate) result: HandoffResult,
}

#[async_trait]
impl Alteration for SettleHandoff {
    const OPERATION: &'static str = "settle_handoff";

    type Answer = bool;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<bool> {
        let found = session.rows(queries::SUSPENDED_FIND_ID, vec![Param::Uuid(self.id.as_uuid())]).await?;
        let Some(seq) = found.first().map(|row| row.int(0)) else { return Ok((false, Vec::new())) };
        let slots = slots(session, &[seq]).await?;
        lock_sessions(session, &slots).await?;
        for (slot, _) in &slots {
            moves.settle_handoff(slot, self.result.clone());
        }
        Ok((true, Vec::new()))
    }
}
