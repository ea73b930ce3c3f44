//! Settling under the fence with every verdict, extending, and taking back what is over. The plain success of most
//! messages is settled in `exchange.rs`.

use crate::leases::{self, Settling};
use crate::link::{Param, Session};
use crate::moves::{self, Promoted};
use crate::queries;
use mailslot_core::moves::{Held, Moves};
use mailslot_core::store::{ExtendRequest, Extended, Recovered, Settled};
use mailslot_core::stored::{RowReader, instant, micros};
use mailslot_core::{Seq, Settlement, StoreError};
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// Settles what the leases still hold. The caller finishes the moves.
pub(crate) async fn settle(
    session: &mut Session<'_>,
    settlements: Vec<Settlement>,
    moves: &mut Moves,
) -> Result<(Vec<Settled>, Vec<Promoted>), StoreError> {
    if settlements.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut settling = Settling::default();
    let leases: BTreeSet<_> = settlements.iter().map(|settlement| settlement.lease.generation).collect();
    let seqs = settlements.iter().map(|settlement| settlement.seq.0).collect();
    let (owners, members) = leases::lock(session, leases.into_iter().collect(), seqs, &mut settling).await?;
    let (settled, left) = Held::new(owners, members).settle(settlements, moves);
    let promoted = if left.is_empty() { Vec::new() } else { moves::write(session, moves, &settling).await? };
    Ok((settled, promoted))
}

/// Moves the end of leases.
pub(crate) async fn extend(
    session: &mut Session<'_>,
    request: &ExtendRequest,
    time: Param<'static>,
) -> Result<Vec<Extended>, StoreError> {
    let duration = i64::try_from(request.duration.as_micros()).unwrap_or(i64::MAX);
    let params = vec![
        time,
        Param::Int(Some(duration)),
        Param::ints(request.leases.iter().map(|token| token.generation)),
        Param::Uuids(Some(request.leases.iter().map(|token| token.owner).collect())),
    ];
    let rows = session.rows(queries::LEASE_EXTEND, params).await?;
    let (mut owners, mut cancels, mut until) = (HashMap::new(), Vec::new(), 0);
    for row in &rows {
        let owner = RowReader::new(row).bytes(1).and_then(|id| Uuid::from_slice(id).ok()).unwrap_or_default();
        owners.insert(row.int(0), owner);
        until = row.int(2);
        let seqs = row.str(3).unwrap_or_default().split(',').filter_map(|seq| seq.parse().ok());
        cancels.extend(seqs.map(|seq| (row.int(0), Seq(seq))));
    }
    Ok(request.answers(instant(until), &owners, &cancels))
}

/// Takes back the messages of at most `limit` leases that are over. The caller finishes the moves.
pub(crate) async fn recover(
    session: &mut Session<'_>,
    limit: usize,
    moves: &mut Moves,
) -> Result<(Recovered, Vec<i64>, Vec<Promoted>), StoreError> {
    let find = vec![Param::Int(Some(micros(moves.now()))), Param::Int(i64::try_from(limit).ok())];
    let rows = session.rows(queries::LEASE_FIND_EXPIRED, find).await?;
    let over: Vec<_> = rows.iter().map(|row| row.int(0)).collect();
    let mut recovered = Recovered { leases: over.len() as u64, ..Recovered::default() };
    if over.is_empty() {
        return Ok((recovered, over, Vec::new()));
    }
    let mut settling = Settling::default();
    let (_, members) = leases::lock(session, over.clone(), Vec::new(), &mut settling).await?;
    for member in &members {
        moves.take_back(member, &mut recovered);
    }
    let promoted = moves::write(session, moves, &settling).await?;
    Ok((recovered, over, promoted))
}
