//! The invariants of the stored data, each a statement under `queries/check/`, with what breaks it and what mends it.

use crate::error::During;
use crate::migrate;
use crate::moves;
use crate::queries;
use crate::settle::return_orphans;
use mailslot_core::StoreError;
use mailslot_core::moves::Moves;
use mailslot_core::store::{Invariant, Violation};
use sqlx::SqliteConnection;

/// An invariant and the statement that counts what breaks it.
type Check = (Invariant, &'static str);

const ORPHANS: Check = (Invariant::MEMBER_HAS_LEASE, queries::CHECK_MEMBER_WITHOUT_LEASE);

const TALLY: Check = (Invariant::COUNTS, queries::CHECK_TALLY);

const CHECKS: &[Check] = &[
    (Invariant::ONE_PLACE, queries::CHECK_ONE_PLACE),
    (Invariant::PLACE_OF_NOTHING, queries::CHECK_PLACE_OF_NOTHING),
    ORPHANS,
    (Invariant::SESSION_HAS_HEAD, queries::CHECK_SESSION_WITHOUT_HEAD),
    (Invariant::ONE_IN_FLIGHT, queries::CHECK_IN_FLIGHT_BESIDE_HEAD),
    (Invariant::PARKED_WAITS, queries::CHECK_PARKED_BEHIND_NOTHING),
    (Invariant::END_IS_LAST, queries::CHECK_OUTCOME_NOT_LAST),
    (Invariant::READABLE, queries::CHECK_UNREADABLE),
    (Invariant::COPIES, queries::CHECK_COPIES),
    TALLY,
];

async fn run(
    db: &mut SqliteConnection,
    (invariant, statement): Check,
) -> Result<Option<Violation>, StoreError> {
    let check = sqlx::query_as(statement);
    let (count, first): (i64, Option<String>) = check.fetch_one(db).await.during("check")?;
    Ok(invariant.violation(count, first.as_deref()))
}

/// Checks everything.
pub(crate) async fn check(db: &mut SqliteConnection) -> Result<Vec<Violation>, StoreError> {
    let mut found = Vec::new();
    found.extend(check_file(db).await?);
    found.extend(check_schema(db).await);
    for check in CHECKS {
        found.extend(run(db, *check).await?);
    }
    Ok(found)
}

async fn check_file(db: &mut SqliteConnection) -> Result<Option<Violation>, StoreError> {
    let lines: Vec<String> =
        sqlx::query_scalar(queries::SCHEMA_QUICK_CHECK).fetch_all(db).await.during("check")?;
    let violation = || Violation {
        invariant: "file_intact",
        found: lines.join("; "),
        cause: "the disk failed, or the file was copied while it was written",
        repair: "stop every program on the file; recover it with SQLite's `.recover`, or restore a backup",
        repairable: false,
    };
    Ok((lines != ["ok"]).then(violation))
}

async fn check_schema(db: &mut SqliteConnection) -> Option<Violation> {
    let drift = migrate::refuse_drift(db).await.err()?;
    Some(Violation {
        invariant: "schema",
        found: drift.to_string(),
        cause: "the schema was changed by hand",
        repair: "undo that change; the store does not open the file again before",
        repairable: false,
    })
}

/// Mends what can be mended and commits with the caller.
pub(crate) async fn repair(
    db: &mut SqliteConnection,
    moves: &mut Moves,
) -> Result<Vec<Violation>, StoreError> {
    const OPERATION: &str = "repair";
    let mut repaired = Vec::new();
    if let Some(violation) = run(db, ORPHANS).await? {
        return_orphans(db, moves).await?;
        moves::finish(moves, db, OPERATION).await?;
        repaired.push(violation);
    }
    if let Some(violation) = run(db, TALLY).await? {
        for statement in [queries::TALLY_CLEAR, queries::TALLY_RECOUNT] {
            sqlx::query(statement).execute(&mut *db).await.during(OPERATION)?;
        }
        repaired.push(violation);
    }
    Ok(repaired)
}
