//! Writing what the core's [`Moves`] gathered, set by set.

use crate::error::During;
use crate::ledger;
use crate::queries;
use crate::row::json;
use mailslot_core::moves::{Moves, Slot};
use mailslot_core::stored::micros;
use mailslot_core::{Status, StoreError};
use sqlx::SqliteConnection;
use sqlx::query;
use std::mem::take;

/// Writes everything but the counters, so that more may be gathered; [`finish`] writes those.
pub(crate) async fn write(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    write_completed(moves, db, operation).await?;
    leave(moves, db, operation).await?;
    write_outcomes(moves, db, operation).await?;
    write_places(moves, db, operation).await?;
    if !moves.freed.is_empty() {
        ledger::free_keys(db, &take(&mut moves.freed), operation).await?;
    }
    hand_sessions_on(moves, db, operation).await
}

/// Writes everything.
pub(crate) async fn finish(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    write(moves, db, operation).await?;
    let rows: Vec<_> = moves.take_tally().map(|((lane, status), by)| (lane, status.as_str(), by)).collect();
    if !rows.is_empty() {
        query(queries::TALLY_ADD).bind(json(rows)).execute(db).await.during(operation)?;
    }
    Ok(())
}

/// The plain successes, before they leave their place: the statement takes their attempts from there.
async fn write_completed(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    let completed = take(&mut moves.completed);
    if !completed.is_empty() {
        let insert =
            query(queries::OUTCOME_INSERT_COMPLETED).bind(seqs(&completed)).bind(micros(moves.now()));
        insert.execute(db).await.during(operation)?;
    }
    Ok(())
}

async fn leave(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    for (status, slots) in take(&mut moves.leaving) {
        let statement = match status {
            Status::Pending => queries::READY_DELETE,
            Status::Leased => queries::LEASE_MEMBER_DELETE,
            Status::Parked => queries::PARKED_DELETE,
            Status::Suspended => queries::SUSPENDED_DELETE,
            Status::Completed | Status::Skipped | Status::DeadLettered | Status::Cancelled => {
                queries::OUTCOME_REOPEN
            }
        };
        query(statement).bind(seqs(&slots)).execute(&mut *db).await.during(operation)?;
    }
    Ok(())
}

async fn write_outcomes(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    let outcomes = take(&mut moves.outcomes);
    if !outcomes.is_empty() {
        let rows = outcomes
            .into_iter()
            .map(|row| (row.seq, row.generation, row.attempt, row.kind, row.reason, row.error, row.is_end));
        let insert = query(queries::OUTCOME_INSERT).bind(json(rows)).bind(micros(moves.now()));
        insert.execute(db).await.during(operation)?;
    }
    Ok(())
}

async fn write_places(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    let ready = take(&mut moves.ready);
    if !ready.is_empty() {
        query(queries::READY_INSERT).bind(ready_rows(ready)).execute(&mut *db).await.during(operation)?;
    }
    let suspended = take(&mut moves.suspended);
    if !suspended.is_empty() {
        let rows = json(suspended.into_iter().map(|(slot, handoff)| {
            let Slot { seq, lane, priority, generation, attempt, session, key_policy } = slot;
            (seq, lane, priority, generation, attempt, session, key_policy, handoff)
        }));
        query(queries::SUSPENDED_INSERT).bind(rows).execute(&mut *db).await.during(operation)?;
    }
    Ok(())
}

/// Pending messages and when they are due, as `ready/insert.sql` takes them.
pub(crate) fn ready_rows(ready: impl IntoIterator<Item = (Slot, i64)>) -> String {
    json(ready.into_iter().map(|(slot, due_at)| {
        let Slot { seq, lane, priority, generation, attempt, session, key_policy } = slot;
        (seq, lane, priority, due_at, generation, attempt, session, key_policy)
    }))
}

fn seqs(slots: &[Slot]) -> String {
    json(slots.iter().map(|slot| slot.seq))
}

/// In each session whose head ended, the first that waits becomes the head; without one the session is forgotten.
async fn hand_sessions_on(
    moves: &mut Moves,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<(), StoreError> {
    let released = take(&mut moves.released);
    if released.is_empty() {
        return Ok(());
    }
    let pairs = json(&released);
    let delete = query(queries::SESSION_DELETE_RELEASED).bind(pairs.clone());
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
        moves.promoted(lane);
    }
    let seqs = json(heads.iter().map(|(_, seq)| seq));
    query(queries::PARKED_DELETE).bind(seqs).execute(db).await.during(operation)?;
    Ok(())
}
