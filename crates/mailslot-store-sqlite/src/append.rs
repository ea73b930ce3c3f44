//! Accepting: one transaction of a handful of statements, however many messages.

use crate::error::During;
use crate::insert::Batch;
use crate::queries;
use crate::row::{Row, json};
use jiff::Timestamp;
use mailslot_core::limits::PARKED_PER_SESSION_MAX;
use mailslot_core::moves::Sessions;
use mailslot_core::store::{AppendGroup, Appended, LedgerEntry, SessionRef, plan_append};
use mailslot_core::stored::{LaneCache, LaneKey, RowReader};
use mailslot_core::{LedgerKey, NewMessage, StoreError, TenantName};
use sqlx::SqliteConnection;
use std::collections::{HashMap, HashSet};

/// What an append did.
#[derive(Debug)]
pub(crate) struct AppendResult {
    pub(crate) answers: Vec<Vec<Appended>>,
    /// Lanes that may be remembered once the transaction is committed.
    pub(crate) lanes: HashMap<LaneKey, i64>,
    /// Whether anything is new.
    pub(crate) stored: bool,
    /// The number of the first message that is new; the others follow it.
    pub(crate) first: i64,
}

pub(crate) const OPERATION: &str = "append";

/// Appends in the transaction that `db` is in.
pub(crate) async fn append(
    db: &mut SqliteConnection,
    groups: Vec<AppendGroup>,
    cache: &LaneCache,
    now: impl FnOnce() -> Timestamp,
) -> Result<AppendResult, StoreError> {
    let reserved = count(groups.iter().map(|group| group.messages.len()).sum());
    let last = advance(db, "message", reserved).await?;
    // Read only now: the statement before may have waited for another writer.
    let now = now();
    let known = known(db, &groups).await?;
    let sessions = sessions(db, &groups).await?;
    let plan = plan_append(&groups, &known, now, |message| sessions.room(message));
    let messages = plan.new_messages(&groups);
    let lanes = lanes(db, &messages, cache).await?;
    let stored = !messages.is_empty();
    let first = last - reserved + 1;
    if stored {
        let batch = Batch { now, first, messages, lanes: &lanes, sessions };
        batch.insert(db).await?;
    }
    Ok(AppendResult { answers: plan.into_answers(), lanes, stored, first })
}

/// Reserves numbers and returns the last one.
pub(crate) async fn advance(db: &mut SqliteConnection, name: &str, by: i64) -> Result<i64, StoreError> {
    sqlx::query_scalar(queries::SEQUENCE_ADVANCE).bind(name).bind(by).fetch_one(db).await.during(OPERATION)
}

/// What the ledger knows of the batch's keys.
async fn known(
    db: &mut SqliteConnection,
    groups: &[AppendGroup],
) -> Result<HashMap<LedgerKey, LedgerEntry>, StoreError> {
    let messages = groups.iter().flat_map(|group| &group.messages);
    let keys: Vec<LedgerKey> = messages.flat_map(NewMessage::ledger_keys).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let bytes: Vec<u8> = keys.iter().flat_map(|key| key.0).collect();
    let find = sqlx::query(queries::LEDGER_FIND).bind(json(std::iter::repeat_n(0, keys.len()))).bind(bytes);
    let rows = find.fetch_all(db).await.during(OPERATION)?;
    let mut known = HashMap::with_capacity(rows.len());
    for row in &rows {
        let row = Row(row);
        let mut row = RowReader::new(&row);
        let place = row.integer(0).and_then(|place| usize::try_from(place).ok()).unwrap_or_default();
        known.insert(keys[place], row.ledger_entry(1));
    }
    Ok(known)
}

/// The sessions of the batch that have a head.
async fn sessions(db: &mut SqliteConnection, groups: &[AppendGroup]) -> Result<Sessions, StoreError> {
    let messages = groups.iter().flat_map(|group| &group.messages);
    let wanted: HashSet<_> = messages.filter_map(SessionRef::of).collect();
    if wanted.is_empty() {
        return Ok(Sessions::default());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let bound = i64::try_from(PARKED_PER_SESSION_MAX).unwrap_or(i64::MAX);
    let find = sqlx::query_as(queries::SESSION_FIND).bind(json(wanted.iter().map(session_row))).bind(bound);
    let rows: Vec<(i64, i64, i64)> = find.fetch_all(db).await.during(OPERATION)?;
    let found = rows.into_iter().filter_map(|(place, id, parked)| {
        let session = wanted.get(usize::try_from(place).ok()?)?.clone();
        Some((session, (id, parked.unsigned_abs())))
    });
    Ok(found.collect())
}

/// Endpoint, tenant or nothing, key: as the statements take a session.
pub(crate) fn session_row(session: &SessionRef) -> (&str, &str, &str) {
    let tenant = session.tenant.as_ref().map_or("", TenantName::as_str);
    (session.endpoint.as_str(), tenant, session.key.as_str())
}

/// The numbers of the batch's lanes.
async fn lanes(
    db: &mut SqliteConnection,
    messages: &[&NewMessage],
    cache: &LaneCache,
) -> Result<HashMap<LaneKey, i64>, StoreError> {
    let wanted: HashSet<_> = messages.iter().map(|message| message.lane()).collect();
    let mut found = cache.find(wanted.iter().copied());
    let missing: Vec<_> = wanted
        .into_iter()
        .map(|(endpoint, contract)| (endpoint.clone(), contract.clone()))
        .filter(|lane| !found.contains_key(lane))
        .collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let lanes = json(missing.iter().map(|(endpoint, lane)| (endpoint, lane.name(), lane.version())));
    sqlx::query(queries::LANE_INTERN).bind(&lanes).execute(&mut *db).await.during(OPERATION)?;
    let find = sqlx::query_as(queries::LANE_FIND).bind(&lanes);
    let rows: Vec<(i64, i64)> = find.fetch_all(&mut *db).await.during(OPERATION)?;
    for (place, id) in rows {
        let lane = usize::try_from(place).ok().and_then(|place| missing.get(place));
        found.extend(lane.map(|lane| (lane.clone(), id)));
    }
    Ok(found)
}

pub(crate) fn count(messages: usize) -> i64 {
    i64::try_from(messages).expect("an append is bounded far below")
}
