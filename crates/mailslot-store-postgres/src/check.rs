//! The invariants of the stored data, each a statement under `queries/check/`, with what breaks it and what mends it.
//! Each statement sees one state of the data, so work may go on meanwhile.

use crate::change::slot;
use crate::leases::Settling;
use crate::link::{Param, Session};
use crate::migrate;
use crate::moves;
use crate::operator::{Alteration, Outcome};
use crate::queries::{self, Query};
use async_trait::async_trait;
use mailslot_core::moves::{Member, Moves, Slot};
use mailslot_core::store::{Invariant, Recovered, Violation};
use mailslot_core::stored::micros;
use mailslot_core::{Status, StoreError};

/// An invariant and the statement that counts what breaks it.
pub(crate) type Check = (Invariant, Query);

const ORPHANS: Check = (Invariant::MEMBER_HAS_LEASE, queries::CHECK_MEMBER_WITHOUT_LEASE);

const TALLY: Check = (Invariant::COUNTS, queries::CHECK_TALLY);

/// Every check. Each is a transaction of its own.
pub(crate) const CHECKS: &[Check] = &[
    (PARTITIONS, queries::CHECK_PARTITION),
    (Invariant::ONE_PLACE, queries::CHECK_ONE_PLACE),
    (Invariant::PLACE_OF_NOTHING, queries::CHECK_PLACE_OF_NOTHING),
    ORPHANS,
    (Invariant::SESSION_HAS_HEAD, queries::CHECK_SESSION_WITHOUT_HEAD),
    (Invariant::ONE_IN_FLIGHT, queries::CHECK_IN_FLIGHT_BESIDE_HEAD),
    (Invariant::PARKED_WAITS, queries::CHECK_PARKED_BEHIND_NOTHING),
    (Invariant::END_IS_LAST, queries::CHECK_OUTCOME_NOT_LAST),
    (ONE_END, queries::CHECK_ATTEMPT_ENDED_TWICE),
    (Invariant::READABLE, queries::CHECK_UNREADABLE),
    (Invariant::COPIES, queries::CHECK_COPIES),
    TALLY,
];

/// What only this store can break: its messages are kept in partitions.
const PARTITIONS: Invariant = Invariant {
    name: "partitions",
    unit: "partitions that are missing or not what the list of them says",
    cause: "no process with the right to make tables has run for a while, or tables were changed by hand",
    repair: "run any process of the inbox as the owner of its schema: it makes the next partition by itself",
    repairable: false,
};

/// What a settlement under a lost lease would break.
const ONE_END: Invariant = Invariant {
    name: "one_end",
    unit: "messages with an attempt that ended twice",
    cause: "rows were changed by hand or by another program, or a defect of this store",
    repair: "look at the history of these messages; what their handlers did, they may have done twice",
    repairable: false,
};

/// How many orphans are mended at a time.
const ORPHANS_AT_ONCE: i64 = 10_000;

/// Runs one check.
pub(crate) async fn run(
    session: &mut Session<'_>,
    (invariant, statement): Check,
) -> Result<Option<Violation>, StoreError> {
    let row = session.row(statement, vec![]).await?;
    Ok(invariant.violation(row.int(0), row.str(1)))
}

/// Whether the schema is still the one that was migrated.
pub(crate) async fn schema(session: &mut Session<'_>, schema: &str) -> Result<Option<Violation>, StoreError> {
    let drift = migrate::drift(session, schema).await?;
    Ok(drift.map(|found| Violation {
        invariant: "schema",
        found,
        cause: "the schema was changed by hand",
        repair: "undo that change; the store does not open the schema again before",
        repairable: false,
    }))
}

/// Mends what can be mended.
pub(crate) struct Repair;

#[async_trait]
impl Alteration for Repair {
    const OPERATION: &'static str = "repair";

    type Answer = Vec<Violation>;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Vec<Violation>> {
        let orphans = run(session, ORPHANS).await?;
        let counts = run(session, TALLY).await?;
        if orphans.is_some() {
            while return_orphans(session, moves).await? {}
        }
        if orphans.is_some() || counts.is_some() {
            // After the moves are counted: it adds what is still missing.
            moves::finish(session, moves, &Settling::default()).await?;
            session.execute(queries::TALLY_MEND, vec![]).await?;
        }
        Ok((orphans.into_iter().chain(counts).collect(), Vec::new()))
    }
}

/// Puts messages that are nowhere to where they must have been: leased ones become pending, as if their lease had run
/// out; others wait behind the head of their session again. `false`: there are none.
async fn return_orphans(session: &mut Session<'_>, moves: &mut Moves) -> Result<bool, StoreError> {
    let find = vec![Param::Int(Some(ORPHANS_AT_ONCE))];
    let found = session.rows(queries::MESSAGE_FIND_ORPHANS, find).await?;
    let (mut recovered, mut parked) = (Recovered::default(), Vec::new());
    for (slot, status) in found.iter().map(slot) {
        if status == Status::Parked {
            moves.count(slot.lane, Status::Leased, -1);
            moves.count(slot.lane, Status::Parked, 1);
            parked.push(slot);
        } else {
            moves.take_back(&Member { slot, lease: 0, cancel_requested: false }, &mut recovered);
        }
    }
    park(session, &parked, micros(moves.now())).await?;
    moves::write(session, moves, &Settling::default()).await?;
    Ok(!found.is_empty())
}

async fn park(session: &mut Session<'_>, parked: &[Slot], due_at: i64) -> Result<(), StoreError> {
    let ints = |part: fn(&Slot) -> i64| Param::ints(parked.iter().map(part));
    let params = vec![
        Param::Ints(parked.iter().map(|slot| slot.session).collect()),
        ints(|slot| slot.seq),
        ints(|slot| slot.lane),
        ints(|slot| slot.priority),
        Param::ints(parked.iter().map(|_| due_at)),
        ints(|slot| slot.key_policy),
    ];
    session.execute(queries::PARKED_INSERT, params).await.map(|_| ())
}
