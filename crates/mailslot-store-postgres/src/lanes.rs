//! The numbers of lanes, which accepts and claims go by.

use crate::append::place;
use crate::link::{Param, Session};
use crate::queries;
use mailslot_core::stored::{LaneCache, LaneKey};
use mailslot_core::{Contract, EndpointName, StoreError};
use std::collections::{HashMap, HashSet};

/// The numbers of lanes: remembered ones, and others from the tables. What is new may be remembered once the
/// transaction of the session is committed.
pub(crate) async fn number<'l>(
    session: &mut Session<'_>,
    lanes: impl Iterator<Item = (&'l EndpointName, &'l Contract)>,
    cache: &LaneCache,
) -> Result<HashMap<LaneKey, i64>, StoreError> {
    let wanted: HashSet<_> = lanes.collect();
    let mut found = cache.find(wanted.iter().copied());
    let all = wanted.into_iter().map(|(endpoint, contract)| (endpoint.clone(), contract.clone()));
    let missing: Vec<_> = all.filter(|lane| !found.contains_key(lane)).collect();
    found.extend(intern(session, &missing).await?);
    Ok(found)
}

async fn intern(session: &mut Session<'_>, lanes: &[LaneKey]) -> Result<HashMap<LaneKey, i64>, StoreError> {
    if lanes.is_empty() {
        return Ok(HashMap::new());
    }
    let params = || {
        let endpoints = Param::texts(lanes.iter().map(|(endpoint, _)| endpoint.as_str()));
        let contracts = Param::texts(lanes.iter().map(|(_, contract)| contract.name()));
        let versions = Param::ints(lanes.iter().map(|(_, contract)| i64::from(contract.version())));
        vec![endpoints, contracts, versions]
    };
    // Most are there already; looking first keeps the sequence from moving at every start of a process.
    let mut found = find(session, lanes, params()).await?;
    if found.len() < lanes.len() {
        session.execute(queries::LANE_INTERN, params()).await?;
        found = find(session, lanes, params()).await?;
    }
    Ok(found)
}

async fn find(
    session: &mut Session<'_>,
    lanes: &[LaneKey],
    params: Vec<Param<'_>>,
) -> Result<HashMap<LaneKey, i64>, StoreError> {
    let rows = session.rows(queries::LANE_FIND, params).await?;
    let found = rows.iter().filter_map(|row| {
        let lane = lanes.get(place(row)?)?;
        Some((lane.clone(), row.int(1)))
    });
    Ok(found.collect())
}
