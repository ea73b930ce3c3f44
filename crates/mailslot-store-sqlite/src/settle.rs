//! Settling under the fence, extending, and taking back what is over.

use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::json;
use jiff::Timestamp;
use mailslot_core::moves::{Moves, Slot};
use mailslot_core::store::{ExtendRequest, Extended, Recovered, Settled};
use mailslot_core::stored::{instant, later, micros};
use mailslot_core::{LeaseToken, Seq, Settlement, Status, StoreError, outcome::effect_of_expiry};
use serde::Deserialize;
use sqlx::SqliteConnection;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// A leased message, as `lease_member/find_settled.sql` gives it.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Member(i64, i64, i64, u32, u32, Option<i64>, i64, i64, i64);

impl Member {
    fn slot(&self) -> Slot {
        let &Self(seq, lane, priority, generation, attempt, session, key_policy, ..) = self;
        Slot { seq, lane, priority, generation, attempt, session, key_policy }
    }

    fn lease(&self) -> i64 {
        self.7
    }

    fn cancel_requested(&self) -> bool {
        self.8 != 0
    }
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
    let (owners, mut members) = held(db, &settlements, operation).await?;
    let mut settled = Vec::with_capacity(settlements.len());
    let mut leases = BTreeSet::new();
    for settlement in settlements {
        let Settlement { lease, seq, attempt, disposition, error } = settlement;
        let holds = |member: &Member| {
            member.lease() == lease.generation
                && member.slot().attempt() == attempt
                && owners.get(&lease.generation) == Some(&lease.owner)
        };
        if !members.get(&seq).is_some_and(holds) {
            settled.push(Settled::LeaseLost);
            continue;
        }
        // Taken out, so that a second settlement of the same attempt finds nothing.
        let Some(member) = members.remove(&seq) else { continue };
        leases.insert(lease.generation);
        let effect = disposition.effect(member.cancel_requested());
        settled.push(Settled::Applied(moves.apply(member.slot(), effect, error)));
    }
    if !leases.is_empty() {
        moves::write(moves, db, operation).await?;
        delete_empty(db, leases.into_iter().collect(), operation).await?;
    }
    Ok(settled)
}

type Held = (HashMap<i64, Uuid>, HashMap<Seq, Member>);

/// The owners of the leases that are named, and the members among the messages that are named.
async fn held(
    db: &mut SqliteConnection,
    settlements: &[Settlement],
    operation: &'static str,
) -> Result<Held, StoreError> {
    let seqs: Vec<_> = settlements.iter().map(|settlement| settlement.seq).collect();
    let leases: BTreeSet<_> = settlements.iter().map(|settlement| settlement.lease.generation).collect();
    let leases: Vec<_> = leases.into_iter().collect();
    let find = sqlx::query_as(queries::LEASE_MEMBER_FIND_SETTLED).bind(json(&seqs)).bind(json(&leases));
    let (owners, members): (String, String) = find.fetch_one(db).await.during(operation)?;
    let owners: Vec<(i64, Uuid)> = serde_json::from_str(&owners).during(operation)?;
    let members: Vec<Member> = serde_json::from_str(&members).during(operation)?;
    let members = members.into_iter().map(|member| (Seq(member.0), member));
    Ok((owners.into_iter().collect(), members.collect()))
}

async fn delete_empty(
    db: &mut SqliteConnection,
    leases: Vec<i64>,
    operation: &'static str,
) -> Result<(), StoreError> {
    sqlx::query(queries::LEASE_DELETE_EMPTY).bind(json(&leases)).execute(db).await.during(operation)?;
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
    let tokens: Vec<_> =
        request.leases.iter().map(|token| (token.generation, token.owner.simple().to_string())).collect();
    let update = sqlx::query_scalar(queries::LEASE_EXTEND).bind(json(&tokens)).bind(until);
    let extended: Vec<i64> = update.fetch_all(&mut *db).await.during(EXTEND)?;
    let find = sqlx::query_as(queries::LEASE_MEMBER_FIND_CANCELS).bind(json(&extended));
    let cancels: Vec<(i64, i64)> = find.fetch_all(&mut *db).await.during(EXTEND)?;
    // A generation belongs to one owner; the same one under another owner's name is lost to that one.
    let owners = owners(db, &extended).await?;
    let answer = |token: &LeaseToken| {
        if owners.get(&token.generation) != Some(&token.owner) {
            return Extended::Lost;
        }
        let of_lease = cancels.iter().filter(|(lease, _)| *lease == token.generation);
        let cancel_requested = of_lease.map(|(_, seq)| Seq(*seq)).collect();
        Extended::Held { until: instant(until), cancel_requested }
    };
    Ok(request.leases.iter().map(answer).collect())
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
    let members: String = find.fetch_one(&mut *db).await.during(RECOVER)?;
    let members: Vec<Member> = serde_json::from_str(&members).during(RECOVER)?;
    for member in &members {
        match moves.apply(member.slot(), effect_of_expiry(member.cancel_requested()), None) {
            Status::Cancelled => recovered.cancelled += 1,
            _ => recovered.returned += 1,
        }
    }
    moves::write(moves, db, RECOVER).await?;
    delete_empty(db, leases, RECOVER).await?;
    Ok(recovered)
}

/// Takes back members whose lease is gone, as if it had run out. The caller finishes the moves.
pub(crate) async fn return_orphans(db: &mut SqliteConnection, moves: &mut Moves) -> Result<(), StoreError> {
    let find = sqlx::query_scalar(queries::LEASE_MEMBER_FIND_ORPHANS);
    let members: String = find.fetch_one(db).await.during("repair")?;
    let members: Vec<Member> = serde_json::from_str(&members).during("repair")?;
    for member in members {
        moves.apply(member.slot(), effect_of_expiry(member.cancel_requested()), None);
    }
    Ok(())
}
