//! Writing the new messages of an append: their keys in the ledger, their envelopes, and their places.

use crate::append::session_columns;
use crate::link::{Param, Session};
use crate::moves;
use crate::queries;
use jiff::Timestamp;
use mailslot_core::moves::{Numbered, Places, Sessions, Slot};
use mailslot_core::stored::{LaneKey, code_of_policy, micros};
use mailslot_core::{ContentType, LedgerKey, LedgerKeys, NewMessage, StoreError, TraceContext};
use std::borrow::Cow;
use std::collections::HashMap;

/// Most payload bytes in one statement; a single larger payload goes alone. Bounds the memory of both sides.
const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most rows in one statement.
const STATEMENT_ROWS_MAX: usize = 1_000;

/// The messages of an append that are new.
pub(crate) struct Batch<'b> {
    pub(crate) now: Timestamp,
    /// One for each message.
    pub(crate) seqs: Vec<i64>,
    pub(crate) messages: Vec<&'b NewMessage>,
    pub(crate) lanes: &'b HashMap<LaneKey, i64>,
}

impl Batch<'_> {
    /// Writes them. `false`: another accept took a key meanwhile, and what was written must be rolled back.
    pub(crate) async fn insert(
        &self,
        session: &mut Session<'_>,
        sessions: Sessions,
    ) -> Result<bool, StoreError> {
        if !self.insert_ledger(session).await? {
            return Ok(false);
        }
        for part in self.parts() {
            session.execute(queries::MESSAGE_INSERT, self.envelopes(part)).await?;
        }
        self.insert_places(session, sessions).await?;
        Ok(true)
    }

    /// Stretches of the messages that fit into a statement.
    fn parts(&self) -> Vec<std::ops::Range<usize>> {
        let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
        for (index, message) in self.messages.iter().enumerate() {
            let length = message.payload.bytes().len();
            if index - begin == STATEMENT_ROWS_MAX || (bytes > 0 && bytes + length > STATEMENT_BYTES_MAX) {
                parts.push(begin..index);
                (begin, bytes) = (index, 0);
            }
            bytes += length;
        }
        parts.push(begin..self.messages.len());
        parts
    }

    fn envelopes(&self, part: std::ops::Range<usize>) -> Vec<Param<'_>> {
        let messages = &self.messages[part.clone()];
        let ints =
            |column: &dyn Fn(&NewMessage) -> i64| Param::ints(messages.iter().map(|message| column(message)));
        let texts = |column: fn(&NewMessage) -> Option<Cow<'_, str>>| {
            Param::Texts(Some(messages.iter().map(|message| column(message)).collect()))
        };
        vec![
            Param::Int(Some(micros(self.now))),
            Param::ints(self.seqs[part].iter().copied()),
            Param::Uuids(Some(messages.iter().map(|message| message.id.as_uuid()).collect())),
            ints(&|message| i64::from(message.id_supplied)),
            ints(&|message| self.lane(message)),
            ints(&|message| i64::from(message.metadata.priority.rank())),
            ints(&|message| code_of_policy(message.metadata.idempotency.policy())),
            texts(|message| content_type(message).map(Cow::Borrowed)),
            texts(|message| message.metadata.tenant.as_ref().map(|tenant| tenant.as_str().into())),
            texts(|message| message.metadata.session.as_ref().map(|session| session.as_str().into())),
            texts(|message| message.metadata.idempotency.key().map(|key| key.as_str().into())),
            texts(|message| message.metadata.trace.context().map(|context| context.traceparent().into())),
            texts(|message| tracestate(message).map(Cow::Borrowed)),
            texts(|message| message.metadata.trace.correlation().map(|id| id.as_str().into())),
            texts(|message| message.metadata.trace.causation().map(|id| id.as_str().into())),
            texts(|message| headers(message).map(Cow::Owned)),
            Param::Blobs(
                messages.iter().map(|message| Cow::Borrowed(&message.payload.bytes()[..])).collect(),
            ),
        ]
    }

    fn lane(&self, message: &NewMessage) -> i64 {
        lane(self.lanes, message)
    }

    async fn insert_ledger(&self, session: &mut Session<'_>) -> Result<bool, StoreError> {
        let (mut keys, mut seqs, mut fingerprints, mut kinds) = (vec![], vec![], vec![], vec![]);
        for (seq, message) in self.seqs.iter().zip(&self.messages) {
            let mut fingerprint = None;
            for (kind, key) in ledger_keys(message) {
                kinds.push(kind);
                keys.push(Cow::Owned(key.0.to_vec()));
                seqs.push(*seq);
                let fingerprint = fingerprint.get_or_insert_with(|| message.fingerprint());
                fingerprints.push(Cow::Owned(fingerprint.0.to_vec()));
            }
        }
        if keys.is_empty() {
            return Ok(true);
        }
        let wanted = keys.len() as u64;
        let params = vec![
            Param::Int(Some(micros(self.now))),
            Param::Blobs(keys),
            Param::ints(seqs),
            Param::Blobs(fingerprints),
            Param::ints(kinds),
        ];
        Ok(session.execute(queries::LEDGER_INSERT, params).await? == wanted)
    }

    async fn insert_places(&self, session: &mut Session<'_>, sessions: Sessions) -> Result<(), StoreError> {
        let numbered = self.seqs.iter().zip(&self.messages);
        let numbered = numbered.map(|(&seq, message)| Numbered { seq, lane: self.lane(message), message });
        let places = Places::of(numbered, self.now, sessions);
        if !places.sessions.is_empty() {
            let mut params = session_columns(places.sessions.iter().map(|(_, session)| session));
            params.push(Param::ints(places.sessions.iter().map(|(head, _)| *head)));
            session.execute(queries::SESSION_SET_HEADS, params).await?;
        }
        if !places.ready.is_empty() {
            moves::pend(session, &places.ready).await?;
        }
        if !places.parked.is_empty() {
            session.execute(queries::PARKED_INSERT, parked_columns(&places.parked)).await?;
        }
        moves::count(session, places.tally.into_iter()).await
    }
}

fn parked_columns(parked: &[(Slot, i64)]) -> Vec<Param<'static>> {
    let ints = |part: fn(&Slot) -> i64| Param::ints(parked.iter().map(|(slot, _)| part(slot)));
    vec![
        Param::Ints(parked.iter().map(|(slot, _)| slot.session).collect()),
        ints(|slot| slot.seq),
        ints(|slot| slot.lane),
        ints(|slot| slot.priority),
        Param::ints(parked.iter().map(|(_, due_at)| *due_at)),
        ints(|slot| slot.key_policy),
    ]
}

/// The number of a message's lane.
pub(crate) fn lane(lanes: &HashMap<LaneKey, i64>, message: &NewMessage) -> i64 {
    let (endpoint, contract) = message.lane();
    let lane = lanes.get(&(endpoint.clone(), contract.clone()));
    *lane.expect("every lane of the batch was interned")
}

/// The content type, unless it is the one that NULL stands for.
pub(crate) fn content_type(message: &NewMessage) -> Option<&str> {
    let content_type = message.payload.content_type();
    (*content_type != ContentType::default()).then(|| content_type.as_str())
}

pub(crate) fn tracestate(message: &NewMessage) -> Option<&str> {
    message.metadata.trace.context().and_then(TraceContext::tracestate)
}

/// The headers as JSON, if there are any.
pub(crate) fn headers(message: &NewMessage) -> Option<String> {
    let headers = &message.metadata.headers;
    (!headers.is_empty()).then(|| serde_json::to_string(headers).expect("texts always have a JSON form"))
}

/// The ledger keys of a message with their stored kinds: of the supplied id (0) and of the idempotency key (1).
pub(crate) fn ledger_keys(message: &NewMessage) -> impl Iterator<Item = (i64, LedgerKey)> + use<> {
    let LedgerKeys { id, key } = message.ledger_keys_by_kind();
    id.map(|id| (0, id)).into_iter().chain(key.map(|key| (1, key)))
}
