//! Paced redrives: dead letters go back in acceptance order, as many as the rate allows.

use crate::append::advance;
use crate::change::requeue_all;
use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::Row;
use crate::select::find;
use jiff::Timestamp;
use mailslot_core::StoreError;
use mailslot_core::moves::Moves;
use mailslot_core::store::{
    Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState, RedriveWalk, Selection,
};
use mailslot_core::stored::{RowReader, micros};
use sqlx::SqliteConnection;

/// Starts a redrive.
pub(crate) async fn create(
    db: &mut SqliteConnection,
    spec: RedriveSpec,
    now: Timestamp,
) -> Result<Redrive, StoreError> {
    const OPERATION: &str = "create_redrive";
    let id = advance(db, "redrive", 1).await?;
    let read = sqlx::query_scalar(queries::SEQUENCE_READ).bind("message");
    let last: i64 = read.fetch_one(&mut *db).await.during(OPERATION)?;
    let total = dead_letters(db, &spec, (0, last), usize::MAX, OPERATION).await?.len() as u64;
    let RedriveWalk { redrive, .. } = RedriveWalk::new(RedriveId(id), spec, total, last, now);
    let filter = serde_json::to_string(&redrive.spec.filter).during(OPERATION)?;
    let insert = sqlx::query(queries::REDRIVE_INSERT)
        .bind(id)
        .bind(filter)
        .bind(redrive.spec.rate)
        .bind(redrive.state.as_str())
        .bind(i64::try_from(redrive.total).unwrap_or(i64::MAX))
        .bind(micros(now))
        .bind(last);
    insert.execute(db).await.during(OPERATION)?;
    Ok(redrive)
}

/// Matching dead letters after the first place and up to the last.
async fn dead_letters(
    db: &mut SqliteConnection,
    spec: &RedriveSpec,
    stretch: (i64, i64),
    limit: usize,
    operation: &'static str,
) -> Result<Vec<i64>, StoreError> {
    find(&Selection::dead_letters(&spec.filter, stretch, limit), db, operation).await
}

async fn walks(
    db: &mut SqliteConnection,
    state: Option<RedriveState>,
    id: Option<RedriveId>,
    operation: &'static str,
) -> Result<Vec<RedriveWalk>, StoreError> {
    let list =
        sqlx::query(queries::REDRIVE_LIST).bind(state.map(RedriveState::as_str)).bind(id.map(|id| id.0));
    let rows = list.fetch_all(db).await.during(operation)?;
    rows.iter().map(|row| RowReader::new(&Row(row)).redrive(operation)).collect()
}

/// Every redrive, newest first.
pub(crate) async fn list(db: &mut SqliteConnection) -> Result<Vec<Redrive>, StoreError> {
    let walks = walks(db, None, None, "redrives").await?;
    Ok(walks.into_iter().map(|walk| walk.redrive).collect())
}

/// Pauses, resumes or cancels one.
pub(crate) async fn act(
    db: &mut SqliteConnection,
    id: RedriveId,
    action: RedriveAction,
    now: Timestamp,
) -> Result<Option<Redrive>, StoreError> {
    const OPERATION: &str = "act_on_redrive";
    let Some(mut walk) = walks(db, None, Some(id), OPERATION).await?.pop() else { return Ok(None) };
    if walk.act(action, now) {
        update(db, &walk, OPERATION).await?;
    }
    Ok(Some(walk.redrive))
}

async fn update(
    db: &mut SqliteConnection,
    walk: &RedriveWalk,
    operation: &'static str,
) -> Result<(), StoreError> {
    let update = sqlx::query(queries::REDRIVE_UPDATE)
        .bind(walk.redrive.id.0)
        .bind(walk.redrive.state.as_str())
        .bind(i64::try_from(walk.redrive.requeued).unwrap_or(i64::MAX))
        .bind(micros(walk.redrive.updated_at))
        .bind(walk.passed);
    update.execute(db).await.during(operation)?;
    Ok(())
}

pub(crate) const STEP: &str = "step_redrives";

/// Whether a step could do anything: asked without the write lock.
pub(crate) async fn is_any_running(db: &mut SqliteConnection) -> Result<bool, StoreError> {
    Ok(!walks(db, Some(RedriveState::Running), None, STEP).await?.is_empty())
}

/// Advances every running redrive, oldest first. The caller finishes the moves.
pub(crate) async fn step(
    db: &mut SqliteConnection,
    now: Timestamp,
    moves: &mut Moves,
) -> Result<Vec<Redrive>, StoreError> {
    let mut stepped = Vec::new();
    for mut walk in walks(db, Some(RedriveState::Running), None, STEP).await?.into_iter().rev() {
        let allowed = walk.allowance(now);
        if allowed == 0 {
            continue;
        }
        let seqs = dead_letters(db, &walk.redrive.spec, walk.stretch(), allowed, STEP).await?;
        requeue_all(db, &seqs, moves, STEP).await?;
        // Written before the next redrive looks, which may match the same messages.
        moves::write(moves, db, STEP).await?;
        walk.advance(&seqs, allowed, now);
        update(db, &walk, STEP).await?;
        stepped.push(walk.redrive);
    }
    Ok(stepped)
}
