//! Accepting: one transaction of a handful of statements, however many messages.

use crate::error::During;
use crate::queries;
use crate::row::{RowReader, code_of_policy, json, micros};
use crate::store::{LaneCache, LaneKey};
use jiff::Timestamp;
use mailslot_core::limits::{APPEND_BATCH_MAX, PARKED_PER_SESSION_MAX};
use mailslot_core::store::{AppendGroup, AppendPlan, Appended, LedgerEntry, Planned, plan_append};
use mailslot_core::{
    AcceptOutcome, Fingerprint, Idempotency, LedgerKey, NewMessage, Receipt, SessionKey, Status, StoreError,
    StoreErrorKind, TenantName,
};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Most payload bytes in one statement; a single larger payload goes alone. Bounds the memory that a statement
/// copies, and stays far below SQLite's bound for one value.
const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most rows in one statement.
const STATEMENT_ROWS_MAX: usize = 1_000;

/// What an append did.
#[derive(Debug)]
pub(crate) struct AppendResult {
    pub(crate) answers: Vec<Vec<Appended>>,
    /// Lanes that may be remembered once the transaction is committed.
    pub(crate) lanes: HashMap<LaneKey, i64>,
    /// Whether anything is new.
    pub(crate) stored: bool,
}

pub(crate) fn check(groups: &[AppendGroup]) -> Result<(), StoreError> {
    let messages: usize = groups.iter().map(|group| group.messages.len()).sum();
    if messages > APPEND_BATCH_MAX {
        let detail = format!("{messages} messages in one append; send at most {APPEND_BATCH_MAX}");
        return Err(StoreError::new(StoreErrorKind::Invalid, OPERATION, detail));
    }
    Ok(())
}

const OPERATION: &str = "append";

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
    let room = |message: &NewMessage| {
        let session = SessionRef::of(message).and_then(|session| sessions.get(&session));
        session
            .map_or(PARKED_PER_SESSION_MAX + 1, |(_, parked)| PARKED_PER_SESSION_MAX.saturating_sub(*parked))
    };
    let plan = plan_append(&groups, &known, now, room);
    let messages = new_messages(&groups, &plan);
    let lanes = lanes(db, &messages, cache).await?;
    let stored = !messages.is_empty();
    if stored {
        let first = last - reserved + 1;
        let batch = Batch { now, first, messages, lanes: &lanes, sessions };
        batch.insert(db).await?;
    }
    Ok(AppendResult { answers: plan.into_answers(), lanes, stored })
}

/// Reserves numbers and returns the last one.
pub(crate) async fn advance(db: &mut SqliteConnection, name: &str, by: i64) -> Result<i64, StoreError> {
    sqlx::query_scalar(queries::SEQUENCE_ADVANCE).bind(name).bind(by).fetch_one(db).await.during(OPERATION)
}

fn new_messages<'g>(groups: &'g [AppendGroup], plan: &AppendPlan) -> Vec<&'g NewMessage> {
    let messages = groups.iter().flat_map(|group| &group.messages);
    let planned = plan.groups.iter().flatten();
    messages
        .zip(planned)
        .filter(|(_, planned)| matches!(planned, Planned::Insert(_)))
        .map(|(m, _)| m)
        .collect()
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
    let find = sqlx::query(queries::LEDGER_FIND).bind(json(&vec![0u8; keys.len()])).bind(bytes);
    let rows = find.fetch_all(db).await.during(OPERATION)?;
    let mut known = HashMap::with_capacity(rows.len());
    for row in &rows {
        let mut row = RowReader::new(row);
        let place = row.integer(0).and_then(|place| usize::try_from(place).ok()).unwrap_or_default();
        let fingerprint = row.bytes(1).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let receipt = Receipt {
            id: row.id(2, 0),
            accepted_at: row.timestamp(3, "accepted_at").unwrap_or(Timestamp::UNIX_EPOCH),
            tenant: row.tenant(4),
            trace: row.trace(5),
            endpoint: row.endpoint(9),
            contract: row.contract(10),
            outcome: AcceptOutcome::AlreadyAccepted { status: row.status(12) },
        };
        known.insert(keys[place], LedgerEntry { fingerprint: Fingerprint(fingerprint), receipt });
    }
    Ok(known)
}

/// What a session is known by: endpoint, tenant or nothing, key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct SessionRef(String, String, String);

impl SessionRef {
    pub(crate) fn of(message: &NewMessage) -> Option<Self> {
        let metadata = &message.metadata;
        let key = metadata.session.as_ref().map(SessionKey::as_str)?;
        let tenant = metadata.tenant.as_ref().map_or("", TenantName::as_str);
        Some(Self(metadata.endpoint.as_str().to_owned(), tenant.to_owned(), key.to_owned()))
    }
}

/// The sessions of the batch that have a head: their number, and how many wait.
async fn sessions(
    db: &mut SqliteConnection,
    groups: &[AppendGroup],
) -> Result<HashMap<SessionRef, (i64, u64)>, StoreError> {
    let messages = groups.iter().flat_map(|group| &group.messages);
    let wanted: HashSet<_> = messages.filter_map(SessionRef::of).collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let bound = i64::try_from(PARKED_PER_SESSION_MAX).unwrap_or(i64::MAX);
    let find = sqlx::query_as(queries::SESSION_FIND).bind(json(&wanted)).bind(bound);
    let rows: Vec<(i64, i64, i64)> = find.fetch_all(db).await.during(OPERATION)?;
    let found = rows.into_iter().filter_map(|(place, id, parked)| {
        let session = wanted.get(usize::try_from(place).ok()?)?.clone();
        Some((session, (id, parked.unsigned_abs())))
    });
    Ok(found.collect())
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
    let rows: Vec<_> =
        missing.iter().map(|(endpoint, contract)| (endpoint, contract.name(), contract.version())).collect();
    sqlx::query(queries::LANE_INTERN).bind(json(&rows)).execute(&mut *db).await.during(OPERATION)?;
    let find = sqlx::query_as(queries::LANE_FIND).bind(json(&rows));
    let rows: Vec<(i64, i64)> = find.fetch_all(&mut *db).await.during(OPERATION)?;
    for (place, id) in rows {
        let lane = usize::try_from(place).ok().and_then(|place| missing.get(place));
        found.extend(lane.map(|lane| (lane.clone(), id)));
    }
    Ok(found)
}

#[derive(Debug, Serialize)]
struct MessageRow<'m>(
    bool,
    i64,
    u8,
    &'m str,
    Option<&'m str>,
    Option<&'m str>,
    Option<&'m str>,
    i64,
    Option<&'m str>,
    Option<&'m str>,
    Option<&'m str>,
    Option<&'m str>,
    Option<String>,
    usize,
    usize,
);

/// The messages of an append that are new.
struct Batch<'b> {
    now: Timestamp,
    first: i64,
    messages: Vec<&'b NewMessage>,
    lanes: &'b HashMap<LaneKey, i64>,
    sessions: HashMap<SessionRef, (i64, u64)>,
}

impl Batch<'_> {
    async fn insert(mut self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        self.insert_messages(db).await?;
        self.insert_ledger(db).await?;
        self.insert_places(db).await
    }

    fn lane(&self, message: &NewMessage) -> i64 {
        let (endpoint, contract) = message.lane();
        let lane = self.lanes.get(&(endpoint.clone(), contract.clone()));
        *lane.expect("every lane of the batch was interned")
    }

    async fn insert_messages(&self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        let (mut seq, mut rows) = (self.first, Vec::new());
        let (mut ids, mut payloads) = (Vec::new(), Vec::new());
        for message in &self.messages {
            let bytes = message.payload.bytes();
            if rows.len() == STATEMENT_ROWS_MAX || payloads.len() + bytes.len() > STATEMENT_BYTES_MAX {
                let written = count(rows.len());
                self.write(db, seq, &rows, std::mem::take(&mut ids), std::mem::take(&mut payloads)).await?;
                seq += written;
                rows.clear();
            }
            rows.push(self.row(message, payloads.len() + 1));
            ids.extend_from_slice(message.id.as_uuid().as_bytes());
            payloads.extend_from_slice(bytes);
        }
        self.write(db, seq, &rows, ids, payloads).await
    }

    fn row<'m>(&self, message: &'m NewMessage, offset: usize) -> MessageRow<'m> {
        let metadata = &message.metadata;
        let (key, policy) = key(message);
        let context = metadata.trace.context();
        let headers = (!metadata.headers.is_empty())
            .then(|| serde_json::to_string(&metadata.headers).expect("texts always have a JSON form"));
        MessageRow(
            message.id_supplied,
            self.lane(message),
            metadata.priority.rank(),
            message.payload.content_type().as_str(),
            metadata.tenant.as_ref().map(AsRef::as_ref),
            metadata.session.as_ref().map(AsRef::as_ref),
            key,
            policy,
            context.map(mailslot_core::TraceContext::traceparent),
            context.and_then(mailslot_core::TraceContext::tracestate),
            metadata.trace.correlation().map(AsRef::as_ref),
            metadata.trace.causation().map(AsRef::as_ref),
            headers,
            offset,
            message.payload.bytes().len(),
        )
    }

    async fn write(
        &self,
        db: &mut SqliteConnection,
        first: i64,
        rows: &[MessageRow<'_>],
        ids: Vec<u8>,
        payloads: Vec<u8>,
    ) -> Result<(), StoreError> {
        let insert =
            sqlx::query(queries::MESSAGE_INSERT).bind(json(rows)).bind(first).bind(ids).bind(payloads);
        insert.bind(micros(self.now)).execute(db).await.during(OPERATION)?;
        Ok(())
    }

    async fn insert_ledger(&self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        let (mut rows, mut keys, mut fingerprints) = (Vec::new(), Vec::new(), Vec::new());
        for (seq, message) in (self.first..).zip(&self.messages) {
            let mut fingerprint = None;
            for key in message.ledger_keys() {
                let by_id = message.id_supplied
                    && key == LedgerKey::of_id(message.metadata.tenant.as_ref(), message.id);
                rows.push((seq, i64::from(!by_id)));
                keys.extend_from_slice(&key.0);
                let fingerprint = fingerprint.get_or_insert_with(|| message.fingerprint());
                fingerprints.extend_from_slice(&fingerprint.0);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let insert = sqlx::query(queries::LEDGER_INSERT).bind(json(&rows)).bind(keys).bind(fingerprints);
        insert.bind(micros(self.now)).execute(db).await.during(OPERATION)?;
        Ok(())
    }

    /// Heads and messages without a session become pending; the others park.
    async fn insert_places(&mut self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        let (mut sessions, mut ready, mut parked) = (Vec::new(), Vec::new(), Vec::new());
        let mut tally: BTreeMap<(i64, Status), i64> = BTreeMap::new();
        for (seq, message) in (self.first..).zip(std::mem::take(&mut self.messages)) {
            let (lane, priority) = (self.lane(message), message.metadata.priority.rank());
            let (due_at, (_, policy)) = (micros(message.due_at(self.now)), key(message));
            let session = SessionRef::of(message);
            let waits_in = session.as_ref().and_then(|session| self.sessions.get(session)).map(|(id, _)| *id);
            if let Some(id) = waits_in {
                parked.push((id, seq, lane, priority, due_at, policy));
                *tally.entry((lane, Status::Parked)).or_default() += 1;
                continue;
            }
            ready.push((seq, lane, priority, due_at, 0, 0, session.is_some().then_some(seq), policy));
            *tally.entry((lane, Status::Pending)).or_default() += 1;
            if let Some(session) = session {
                self.sessions.insert(session.clone(), (seq, 0));
                let SessionRef(endpoint, tenant, key) = session;
                sessions.push((seq, endpoint, tenant, key));
            }
        }
        let tally: Vec<_> =
            tally.into_iter().map(|((lane, status), by)| (lane, status.as_str(), by)).collect();
        let statements = [
            (queries::SESSION_INSERT, sessions.is_empty(), json(&sessions)),
            (queries::READY_INSERT, ready.is_empty(), json(&ready)),
            (queries::PARKED_INSERT, parked.is_empty(), json(&parked)),
            (queries::TALLY_ADD, tally.is_empty(), json(&tally)),
        ];
        for (statement, is_empty, rows) in statements {
            if !is_empty {
                sqlx::query(statement).bind(rows).execute(&mut *db).await.during(OPERATION)?;
            }
        }
        Ok(())
    }
}

/// The idempotency key and the stored form of its policy.
fn key(message: &NewMessage) -> (Option<&str>, i64) {
    match &message.metadata.idempotency {
        Idempotency::None => (None, code_of_policy(mailslot_core::KeyPolicy::default())),
        Idempotency::Keyed { key, policy, .. } => (Some(key.as_str()), code_of_policy(*policy)),
    }
}

fn count(messages: usize) -> i64 {
    i64::try_from(messages).expect("an append is bounded far below")
}
