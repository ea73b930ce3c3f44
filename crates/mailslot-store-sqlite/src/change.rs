//! What operators change. A change of many messages of one session ends where one after the other would end.

use crate::error::During;
use crate::ledger::{delete_keys, ledger_keys};
use crate::moves;
use crate::queries;
use crate::row::json;
use crate::select::find;
use mailslot_core::moves::{Moves, Slot};
use mailslot_core::store::{Change, Changed, Filter, HandoffResult, Selection};
use mailslot_core::{MessageId, Status, StoreError};
use serde::Deserialize;
use sqlx::SqliteConnection;

const OPERATION: &str = "change";

/// A message and where it stands, as `message/slots.sql` gives it.
#[derive(Debug, Deserialize)]
struct Placed(i64, i64, i64, u32, u32, Option<i64>, i64, Option<String>);

pub(crate) async fn slots(
    db: &mut SqliteConnection,
    seqs: &[i64],
    operation: &'static str,
) -> Result<Vec<(Slot, Status)>, StoreError> {
    let find = sqlx::query_scalar(queries::MESSAGE_SLOTS).bind(json(seqs));
    let placed: String = find.fetch_one(db).await.during(operation)?;
    let placed: Vec<Placed> = serde_json::from_str(&placed).during(operation)?;
    let slot = |Placed(seq, lane, priority, generation, attempt, session, key_policy, status)| {
        let slot = Slot { seq, lane, priority, generation, attempt, session, key_policy };
        // A message that is nowhere is found by `check`; a purge takes it away.
        (slot, status.and_then(|status| status.parse().ok()).unwrap_or(Status::Skipped))
    };
    Ok(placed.into_iter().map(slot).collect())
}

/// Applies a change to what matches. The caller finishes the moves.
pub(crate) async fn change(
    db: &mut SqliteConnection,
    change: Change,
    filter: &Filter,
    limit: usize,
    moves: &mut Moves,
) -> Result<Changed, StoreError> {
    let seqs = find(&Selection::to_change(change, filter, limit), db, OPERATION).await?;
    if change == Change::Purge {
        delete(db, &seqs, moves, OPERATION).await?;
    } else if !seqs.is_empty() {
        move_all(db, change, &seqs, moves).await?;
    }
    Ok(Changed { changed: seqs.len() as u64 })
}

async fn move_all(
    db: &mut SqliteConnection,
    change: Change,
    seqs: &[i64],
    moves: &mut Moves,
) -> Result<(), StoreError> {
    let mut cancels = Vec::new();
    for (slot, status) in slots(db, seqs, OPERATION).await? {
        if moves.change(change, &slot, status) {
            cancels.push(slot.seq);
        }
    }
    if !cancels.is_empty() {
        let request = sqlx::query(queries::LEASE_MEMBER_REQUEST_CANCEL).bind(json(&cancels));
        request.execute(db).await.during(OPERATION)?;
    }
    Ok(())
}

/// Requeues dead letters. The caller finishes the moves.
pub(crate) async fn requeue_all(
    db: &mut SqliteConnection,
    seqs: &[i64],
    moves: &mut Moves,
    operation: &'static str,
) -> Result<(), StoreError> {
    for (slot, _) in slots(db, seqs, operation).await? {
        moves.requeue(&slot);
    }
    Ok(())
}

/// Deletes messages with their history and keys; their sessions go on. The caller finishes the moves.
pub(crate) async fn delete(
    db: &mut SqliteConnection,
    seqs: &[i64],
    moves: &mut Moves,
    operation: &'static str,
) -> Result<(), StoreError> {
    if seqs.is_empty() {
        return Ok(());
    }
    for (slot, status) in slots(db, seqs, operation).await? {
        moves.remove(&slot, status);
    }
    let keys = ledger_keys(db, seqs, operation).await?;
    let keys: Vec<_> = keys
        .into_iter()
        .flat_map(|(seq, keys)| keys.id.into_iter().chain(keys.key).map(move |key| (seq, key)))
        .collect();
    delete_keys(db, &keys, operation).await?;
    // While the outcomes still say where the messages stood.
    for statement in [queries::DELIVERY_KEEP, queries::DELIVERY_FORGET] {
        sqlx::query(statement).bind(json(seqs)).execute(&mut *db).await.during(operation)?;
    }
    moves::write(moves, db, operation).await?;
    let statements =
        [queries::DELIVERY_KEEP, queries::DELIVERY_FORGET, queries::OUTCOME_DELETE, queries::MESSAGE_DELETE];
    for statement in statements {
        sqlx::query(statement).bind(json(seqs)).execute(&mut *db).await.during(operation)?;
    }
    Ok(())
}

/// Settles a suspended message from outside. The caller finishes the moves.
pub(crate) async fn settle_handoff(
    db: &mut SqliteConnection,
    id: MessageId,
    result: HandoffResult,
    moves: &mut Moves,
) -> Result<bool, StoreError> {
    const OPERATION: &str = "settle_handoff";
    let find = sqlx::query_scalar(queries::SUSPENDED_FIND_ID).bind(id.as_uuid().as_bytes().to_vec());
    let seq: Option<i64> = find.fetch_optional(&mut *db).await.during(OPERATION)?;
    let Some(seq) = seq else { return Ok(false) };
    for (slot, _) in slots(db, &[seq], OPERATION).await? {
        moves.settle_handoff(&slot, result.clone());
    }
    Ok(true)
}
