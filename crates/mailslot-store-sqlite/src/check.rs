//! The invariants of the stored data, each a statement under `queries/check/`, with what breaks it and what mends it.

use crate::error::During;
use crate::migrate;
use crate::moves;
use crate::queries;
use crate::settle::return_orphans;
use mailslot_core::StoreError;
use mailslot_core::moves::Moves;
use mailslot_core::store::Violation;
use sqlx::SqliteConnection;

struct Invariant {
    name: &'static str,
    statement: &'static str,
    /// What the numbers in the answer are.
    unit: &'static str,
    cause: &'static str,
    repair: &'static str,
    repairable: bool,
}

const BY_HAND: &str = "rows were changed by hand or by another program, or a defect of this store";
const RESTORE: &str = "stop the workers and restore a backup, or purge these messages and accept them again";

const ORPHANS: Invariant = Invariant {
    name: "member_without_lease",
    statement: queries::CHECK_MEMBER_WITHOUT_LEASE,
    unit: "leased messages without a lease",
    cause: BY_HAND,
    repair: "run the repair: they become pending again, and the attempt counts as expired",
    repairable: true,
};

const TALLY: Invariant = Invariant {
    name: "counts",
    statement: queries::CHECK_TALLY,
    unit: "counters that are wrong",
    cause: BY_HAND,
    repair: "run the repair: it counts anew",
    repairable: true,
};

const INVARIANTS: &[Invariant] = &[
    Invariant {
        name: "one_place",
        statement: queries::CHECK_ONE_PLACE,
        unit: "messages that are in no place or in several",
        cause: BY_HAND,
        repair: RESTORE,
        repairable: false,
    },
    Invariant {
        name: "place_of_nothing",
        statement: queries::CHECK_PLACE_OF_NOTHING,
        unit: "places, outcomes or ledger records without a message",
        cause: "messages were deleted by hand instead of being purged",
        repair: "pending ones are dead-lettered when they are claimed; delete the other rows by hand",
        repairable: false,
    },
    ORPHANS,
    Invariant {
        name: "session_without_head",
        statement: queries::CHECK_SESSION_WITHOUT_HEAD,
        unit: "sessions whose head has ended or is elsewhere",
        cause: BY_HAND,
        repair: "restore a backup, or purge the messages of these sessions and accept them again",
        repairable: false,
    },
    Invariant {
        name: "one_in_flight",
        statement: queries::CHECK_IN_FLIGHT_BESIDE_HEAD,
        unit: "messages in flight that are not the head of their session",
        cause: BY_HAND,
        repair: RESTORE,
        repairable: false,
    },
    Invariant {
        name: "parked_waits",
        statement: queries::CHECK_PARKED_BEHIND_NOTHING,
        unit: "parked messages without an earlier head",
        cause: BY_HAND,
        repair: "purge these messages and accept them again",
        repairable: false,
    },
    Invariant {
        name: "end_is_last",
        statement: queries::CHECK_OUTCOME_NOT_LAST,
        unit: "messages whose end is not their last outcome",
        cause: BY_HAND,
        repair: RESTORE,
        repairable: false,
    },
    Invariant {
        name: "readable",
        statement: queries::CHECK_UNREADABLE,
        unit: "messages with a value that cannot be read",
        cause: "rows were changed by hand, or the disk damaged them",
        repair: "leave them: a claim dead-letters them as undecodable; or purge them",
        repairable: false,
    },
    Invariant {
        name: "copies",
        statement: queries::CHECK_COPIES,
        unit: "messages whose place disagrees with them",
        cause: BY_HAND,
        repair: RESTORE,
        repairable: false,
    },
    TALLY,
];

impl Invariant {
    async fn check(&self, db: &mut SqliteConnection) -> Result<Option<Violation>, StoreError> {
        let check = sqlx::query_as(self.statement);
        let (count, first): (i64, Option<String>) = check.fetch_one(db).await.during("check")?;
        let violation = || Violation {
            invariant: self.name,
            found: format!("{count} {}, first: {}", self.unit, first.unwrap_or_default()),
            cause: self.cause,
            repair: self.repair,
            repairable: self.repairable,
        };
        Ok((count > 0).then(violation))
    }
}

/// Checks everything.
pub(crate) async fn check(db: &mut SqliteConnection) -> Result<Vec<Violation>, StoreError> {
    let mut found = Vec::new();
    found.extend(check_file(db).await?);
    found.extend(check_schema(db).await);
    for invariant in INVARIANTS {
        found.extend(invariant.check(db).await?);
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
    if let Some(violation) = ORPHANS.check(db).await? {
        return_orphans(db, moves).await?;
        moves::finish(moves, db, OPERATION).await?;
        repaired.push(violation);
    }
    if let Some(violation) = TALLY.check(db).await? {
        for statement in [queries::TALLY_CLEAR, queries::TALLY_RECOUNT] {
            sqlx::query(statement).execute(&mut *db).await.during(OPERATION)?;
        }
        repaired.push(violation);
    }
    Ok(repaired)
}
