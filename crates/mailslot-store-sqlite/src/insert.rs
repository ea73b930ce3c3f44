//! Writing new messages: their envelopes, their keys in the ledger, and their places.

use crate::append::{OPERATION, count, session_row};
use crate::error::During;
use crate::moves::ready_rows;
use crate::queries;
use crate::row::json;
use jiff::Timestamp;
use mailslot_core::moves::{Numbered, Places, Sessions, Slot};
use mailslot_core::stored::{LaneKey, code_of_policy, micros};
use mailslot_core::{LedgerKeys, NewMessage, Status, StoreError, TraceContext};
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
    pub(crate) sessions: Sessions,
}

impl Batch<'_> {
    /// Writes them, their keys and their places.
    pub(crate) async fn insert(self, db: &mut SqliteConnection) -> Result<(), StoreError> {
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
        let idempotency = &metadata.idempotency;
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
            idempotency.key().map(AsRef::as_ref),
            code_of_policy(idempotency.policy()),
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
            let LedgerKeys { id, key } = message.ledger_keys_by_kind();
            let mut fingerprint = None;
            for (kind, key) in [(0, id), (1, key)] {
                let Some(key) = key else { continue };
                rows.push((seq, kind));
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
    async fn insert_places(self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        if self.messages.iter().all(|message| Places::is_plain(message, self.now)) {
            return self.insert_plain(db).await;
        }
        let Places { sessions, ready, parked, tally } = self.places();
        let sessions_json = json(sessions.iter().map(|(id, session)| (id, session_row(session))));
        let parked_json = json(parked.iter().map(|(slot, due_at)| {
            let Slot { seq, lane, priority, session, key_policy, .. } = slot;
            (session, seq, lane, priority, due_at, key_policy)
        }));
        let tally = json(tally.iter().map(|((lane, status), by)| (lane, status.as_str(), by)));
        let statements = [
            (queries::SESSION_INSERT, sessions.is_empty(), sessions_json),
            (queries::READY_INSERT, ready.is_empty(), ready_rows(ready)),
            (queries::PARKED_INSERT, parked.is_empty(), parked_json),
            (queries::TALLY_ADD, false, tally),
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

    fn places(mut self) -> Places {
        let sessions = std::mem::take(&mut self.sessions);
        let lanes = self.messages.iter().map(|message| self.lane(message));
        let messages = (self.first..).zip(lanes).zip(&self.messages);
        let numbered = messages.map(|((seq, lane), message)| Numbered { seq, lane, message });
        Places::of(numbered, self.now, sessions)
    }
}
