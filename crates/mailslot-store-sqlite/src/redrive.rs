//! Paced redrives: dead letters go back in acceptance order, as many as the rate allows.

use crate::append::advance;
use crate::change::requeue_all;
use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::Row;
use crate::select::Selection;
use jiff::Timestamp;
use mailslot_core::limits::CHANGE_BATCH_MAX;
use mailslot_core::moves::Moves;
use mailslot_core::store::{Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState, redrive_allowance};
use mailslot_core::stored::{RowReader, micros};
use mailslot_core::{Status, StoreError, StoreErrorKind};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

/// A redrive with the stretch that it still has to walk.
#[derive(Debug)]
struct Walk {
    redrive: Redrive,
    passed: i64,
    last: i64,
}

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
    let redrive = Redrive {
        id: RedriveId(id),
        state: RedriveState::Running,
        total: dead_letters(db, &spec, (0, last), usize::MAX, OPERATION).await?.len() as u64,
        spec,
        requeued: 0,
        created_at: now,
        updated_at: now,
    };
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
    (after, last): (i64, i64),
    limit: usize,
    operation: &'static str,
) -> Result<Vec<i64>, StoreError> {
    let mut selection = Selection::oldest(&spec.filter, limit);
    selection.statuses = Some(vec![Status::DeadLettered]);
    selection.between = (after, last.saturating_add(1));
    selection.find(db, operation).await
}

async fn walks(
    db: &mut SqliteConnection,
    state: Option<RedriveState>,
    id: Option<RedriveId>,
    operation: &'static str,
) -> Result<Vec<Walk>, StoreError> {
    let list =
        sqlx::query(queries::REDRIVE_LIST).bind(state.map(RedriveState::as_str)).bind(id.map(|id| id.0));
    let rows = list.fetch_all(db).await.during(operation)?;
    rows.iter().map(|row| walk(row, operation)).collect()
}

fn walk(row: &SqliteRow, operation: &'static str) -> Result<Walk, StoreError> {
    let row = Row(row);
    let mut row = RowReader::new(&row);
    let corrupt =
        || StoreError::new(StoreErrorKind::Corrupt, operation, "a stored redrive cannot be read; cancel it");
    let filter = row.text(1, "filter").unwrap_or_default();
    let rate = row.integer(2).and_then(|rate| u32::try_from(rate).ok()).ok_or_else(corrupt)?;
    let redrive = Redrive {
        id: RedriveId(row.integer(0).unwrap_or_default()),
        spec: RedriveSpec { filter: serde_json::from_str(&filter).during(operation)?, rate },
        state: row.label(3, "state").ok_or_else(corrupt)?,
        total: row.count(4),
        requeued: row.count(5),
        created_at: row.timestamp(6, "created_at").ok_or_else(corrupt)?,
        updated_at: row.timestamp(7, "updated_at").ok_or_else(corrupt)?,
    };
    let place = |index| row.integer(index).unwrap_or_default();
    Ok(Walk { redrive, passed: place(8), last: place(9) })
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
    let state = walk.redrive.state.on(action);
    if state != walk.redrive.state {
        walk.redrive.state = state;
        walk.redrive.updated_at = now;
        update(db, &walk, OPERATION).await?;
    }
    Ok(Some(walk.redrive))
}

async fn update(db: &mut SqliteConnection, walk: &Walk, operation: &'static str) -> Result<(), StoreError> {
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
        let redrive = &mut walk.redrive;
        let first = redrive.updated_at == redrive.created_at && redrive.requeued == 0;
        let allowed = redrive_allowance(redrive.spec.rate, redrive.updated_at, now, first, CHANGE_BATCH_MAX);
        if allowed == 0 {
            continue;
        }
        let seqs = dead_letters(db, &redrive.spec, (walk.passed, walk.last), allowed, STEP).await?;
        requeue_all(db, &seqs, moves, STEP).await?;
        // Written before the next redrive looks, which may match the same messages.
        moves::write(moves, db, STEP).await?;
        redrive.requeued += seqs.len() as u64;
        redrive.updated_at = now;
        if seqs.len() < allowed {
            redrive.state = RedriveState::Done;
        }
        walk.passed = seqs.last().copied().unwrap_or(walk.passed);
        update(db, &walk, STEP).await?;
        stepped.push(walk.redrive);
    }
    Ok(stepped)
}
