//! Writing new messages: their envelopes, their keys in the ledger, and their places.

use crate::append::{OPERATION, SessionRef, count};
use crate::error::During;
use crate::lanes::LaneKey;
use crate::moves::ready_rows;
use crate::queries;
use crate::row::json;
use jiff::Timestamp;
use mailslot_core::moves::Slot;
use mailslot_core::stored::{code_of_policy, micros};
use mailslot_core::{Idempotency, KeyPolicy, LedgerKey, NewMessage, Status, StoreError, TraceContext};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, HashMap};

/// Most payload bytes in one statement; a single larger payload goes alone. Bounds the memory that a statement
/// copies, and stays far below SQLite's bound for one value.
const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most rows in one statement.
const STATEMENT_ROWS_MAX: usize = 1_000;

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
pub(crate) struct Batch<'b> {
    pub(crate) now: Timestamp,
    pub(crate) first: i64,
    pub(crate) messages: Vec<&'b NewMessage>,
    pub(crate) lanes: &'b HashMap<LaneKey, i64>,
    pub(crate) sessions: HashMap<SessionRef, (i64, u64)>,
}

impl Batch<'_> {
    /// Writes them, their keys and their places.
    pub(crate) async fn insert(mut self, db: &mut SqliteConnection) -> Result<(), StoreError> {
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
            context.map(TraceContext::traceparent),
            context.and_then(TraceContext::tracestate),
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

    /// Puts each message where it belongs, and counts it.
    async fn insert_places(&mut self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        let plain = |message: &&NewMessage| {
            message.metadata.session.is_none() && message.due_at(self.now) == self.now
        };
        if self.messages.iter().all(plain) {
            return self.insert_plain(db).await;
        }
        let places = self.places();
        let tally: Vec<_> =
            places.tally.iter().map(|((lane, status), by)| (lane, status.as_str(), by)).collect();
        let statements = [
            (queries::SESSION_INSERT, places.sessions.is_empty(), json(&places.sessions)),
            (queries::READY_INSERT, places.ready.is_empty(), ready_rows(places.ready)),
            (queries::PARKED_INSERT, places.parked.is_empty(), json(&places.parked)),
            (queries::TALLY_ADD, tally.is_empty(), json(&tally)),
        ];
        for (statement, is_empty, rows) in statements {
            if !is_empty {
                sqlx::query(statement).bind(rows).execute(&mut *db).await.during(OPERATION)?;
            }
        }
        Ok(())
    }

    /// Every message is due at once and belongs to no session.
    async fn insert_plain(&self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        let last = self.first + count(self.messages.len()) - 1;
        let insert = sqlx::query(queries::READY_INSERT_ACCEPTED).bind(self.first).bind(last);
        insert.execute(&mut *db).await.during(OPERATION)?;
        let mut tally: BTreeMap<i64, i64> = BTreeMap::new();
        for message in &self.messages {
            *tally.entry(self.lane(message)).or_default() += 1;
        }
        let tally: Vec<_> = tally.iter().map(|(lane, by)| (lane, Status::Pending.as_str(), by)).collect();
        sqlx::query(queries::TALLY_ADD).bind(json(&tally)).execute(db).await.during(OPERATION)?;
        Ok(())
    }

    /// Heads and messages without a session become pending; the others park.
    fn places(&mut self) -> Places {
        let mut places = Places::default();
        for (seq, message) in (self.first..).zip(std::mem::take(&mut self.messages)) {
            let (lane, priority) = (self.lane(message), message.metadata.priority.rank());
            let (due_at, (_, policy)) = (micros(message.due_at(self.now)), key(message));
            let session = SessionRef::of(message);
            let waits_in = session.as_ref().and_then(|session| self.sessions.get(session)).map(|(id, _)| *id);
            if let Some(id) = waits_in {
                places.parked.push((id, seq, lane, priority, due_at, policy));
                *places.tally.entry((lane, Status::Parked)).or_default() += 1;
                continue;
            }
            let head_of = session.is_some().then_some(seq);
            let slot = Slot {
                seq,
                lane,
                priority: i64::from(priority),
                generation: 0,
                attempt: 0,
                session: head_of,
                key_policy: policy,
            };
            places.ready.push((slot, due_at));
            *places.tally.entry((lane, Status::Pending)).or_default() += 1;
            if let Some(session) = session {
                self.sessions.insert(session.clone(), (seq, 0));
                places.sessions.push((seq, session));
            }
        }
        places
    }
}

/// Rows for the places of new messages, as the statements name their columns.
#[derive(Debug, Default)]
struct Places {
    sessions: Vec<(i64, SessionRef)>,
    ready: Vec<(Slot, i64)>,
    parked: Vec<(i64, i64, i64, u8, i64, i64)>,
    tally: BTreeMap<(i64, Status), i64>,
}

/// The idempotency key and the stored form of its policy.
fn key(message: &NewMessage) -> (Option<&str>, i64) {
    match &message.metadata.idempotency {
        Idempotency::None => (None, code_of_policy(KeyPolicy::default())),
        Idempotency::Keyed { key, policy, .. } => (Some(key.as_str()), code_of_policy(*policy)),
    }
}
