//! Settling under the fence, extending, and taking back what is over.

use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::json;
use jiff::Timestamp;
use mailslot_core::moves::{Held, Member, Moves, Slot};
use mailslot_core::store::{ExtendRequest, Extended, Recovered, Settled};
use mailslot_core::stored::{instant, later, micros};
use mailslot_core::{Seq, Settlement, StoreError};
use serde::Deserialize;
use sqlx::SqliteConnection;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// A leased message, as `lease_member/find_settled.sql` gives it.
#[derive(Debug, Clone, Copy, Deserialize)]
struct MemberRow(i64, i64, i64, u32, u32, Option<i64>, i64, i64, i64);

impl From<MemberRow> for Member {
    fn from(row: MemberRow) -> Self {
        let MemberRow(seq, lane, priority, generation, attempt, session, key_policy, lease, cancel) = row;
        let slot = Slot { seq, lane, priority, generation, attempt, session, key_policy };
        Self { slot, lease, cancel_requested: cancel != 0 }
    }
}

fn members(rows: &str, operation: &'static str) -> Result<impl Iterator<Item = Member>, StoreError> {
    let rows: Vec<MemberRow> = serde_json::from_str(rows).during(operation)?;
    Ok(rows.into_iter().map(Member::from))
}

/// Settles what the leases still hold. The caller finishes the moves.
pub(crate) async fn settle(
    db: &mut SqliteConnection,
    settlements: Vec<Settlement>,
    moves: &mut Moves,
    operation: &'static str,
) -> Result<Vec<Settled>, StoreError> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let mut held = held(db, &settlements, operation).await?;
    let (settled, leases) = held.settle(settlements, moves);
    if !leases.is_empty() {
        moves::write(moves, db, operation).await?;
        delete_empty(db, leases, operation).await?;
    }
    Ok(settled)
}

/// The owners of the leases that are named, and the members among the messages that are named.
async fn held(
    db: &mut SqliteConnection,
    settlements: &[Settlement],
    operation: &'static str,
) -> Result<Held, StoreError> {
    let seqs = json(settlements.iter().map(|settlement| settlement.seq));
    let leases: BTreeSet<_> = settlements.iter().map(|settlement| settlement.lease.generation).collect();
    let find = sqlx::query_as(queries::LEASE_MEMBER_FIND_SETTLED).bind(seqs).bind(json(leases));
    let (owners, found): (String, String) = find.fetch_one(db).await.during(operation)?;
    let owners: Vec<(i64, Uuid)> = serde_json::from_str(&owners).during(operation)?;
    Ok(Held::new(owners, members(&found, operation)?))
}

async fn delete_empty(
    db: &mut SqliteConnection,
    leases: impl IntoIterator<Item = i64>,
    operation: &'static str,
) -> Result<(), StoreError> {
    sqlx::query(queries::LEASE_DELETE_EMPTY).bind(json(leases)).execute(db).await.during(operation)?;
    Ok(())
}

const EXTEND: &str = "extend";

/// Moves the end of leases.
pub(crate) async fn extend(
    db: &mut SqliteConnection,
    request: &ExtendRequest,
    now: Timestamp,
) -> Result<Vec<Extended>, StoreError> {
    let until = micros(later(now, request.duration));
    let tokens = request.leases.iter().map(|token| (token.generation, token.owner.simple().to_string()));
    let update = sqlx::query_scalar(queries::LEASE_EXTEND).bind(json(tokens)).bind(until);
    let extended: Vec<i64> = update.fetch_all(&mut *db).await.during(EXTEND)?;
    let find = sqlx::query_as(queries::LEASE_MEMBER_FIND_CANCELS).bind(json(&extended));
    let cancels: Vec<(i64, i64)> = find.fetch_all(&mut *db).await.during(EXTEND)?;
    let cancels: Vec<_> = cancels.into_iter().map(|(lease, seq)| (lease, Seq(seq))).collect();
    let owners = owners(db, &extended).await?;
    Ok(request.answers(instant(until), &owners, &cancels))
}

async fn owners(db: &mut SqliteConnection, leases: &[i64]) -> Result<HashMap<i64, Uuid>, StoreError> {
    let find = sqlx::query_as(queries::LEASE_MEMBER_FIND_SETTLED).bind("[]").bind(json(leases));
    let (owners, _): (String, String) = find.fetch_one(db).await.during(EXTEND)?;
    let owners: Vec<(i64, Uuid)> = serde_json::from_str(&owners).during(EXTEND)?;
    Ok(owners.into_iter().collect())
}

/// The leases whose time is over, longest first.
pub(crate) async fn find_expired(
    db: &mut SqliteConnection,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<i64>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let find = sqlx::query_scalar(queries::LEASE_FIND_EXPIRED).bind(micros(now)).bind(limit);
    find.fetch_all(db).await.during(RECOVER)
}

pub(crate) const RECOVER: &str = "recover";

/// Takes back the messages of expired leases. The caller finishes the moves.
pub(crate) async fn recover(
    db: &mut SqliteConnection,
    leases: Vec<i64>,
    moves: &mut Moves,
) -> Result<Recovered, StoreError> {
    let mut recovered = Recovered { leases: leases.len() as u64, ..Recovered::default() };
    let find = sqlx::query_scalar(queries::LEASE_MEMBER_FIND_OF_LEASES).bind(json(&leases));
    let found: String = find.fetch_one(&mut *db).await.during(RECOVER)?;
    for member in members(&found, RECOVER)? {
        moves.take_back(&member, &mut recovered);
    }
    moves::write(moves, db, RECOVER).await?;
    delete_empty(db, leases, RECOVER).await?;
    Ok(recovered)
}

/// Takes back members whose lease is gone, as if it had run out. The caller finishes the moves.
pub(crate) async fn return_orphans(db: &mut SqliteConnection, moves: &mut Moves) -> Result<(), StoreError> {
    let find = sqlx::query_scalar(queries::LEASE_MEMBER_FIND_ORPHANS);
    let found: String = find.fetch_one(db).await.during("repair")?;
    for member in members(&found, "repair")? {
        moves.take_back(&member, &mut Recovered::default());
    }
    Ok(())
}
