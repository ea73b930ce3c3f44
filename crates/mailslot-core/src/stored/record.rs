//! Whole records. Each names the order of its columns, which every store's statements follow.

use super::code::kind_of_code;
use super::read::{Columns, Read, RowReader};
use crate::codec::{ContentType, Payload};
use crate::contract::Contract;
use crate::id::Seq;
use crate::message::Envelope;
use crate::metadata::{Headers, Priority};
use crate::name::{EndpointName, SessionKey};
use crate::outcome::{ErrorText, Handoff, OutcomeRecord, Reason};
use crate::store::MessageRecord;
use jiff::Timestamp;

impl<R: Columns> RowReader<'_, R> {
    /// An envelope whose lane is known. Columns:
    ///
    /// | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 |
    /// |---|---|---|---|---|---|---|---|---|---|---|---|---|---|
    /// | seq | id | priority | `accepted_at` | `content_type` | payload | tenant | session | `idempotency_key` | traceparent | tracestate | correlation | causation | headers |
    pub fn envelope(&mut self, endpoint: EndpointName, contract: Contract) -> Envelope {
        let seq = self.integer(0).unwrap_or_default();
        Envelope {
            seq: Seq(seq),
            id: self.id(1, seq),
            endpoint,
            contract,
            payload: self.payload(4),
            tenant: self.tenant(6),
            session: self.parse(7, "session", |text| SessionKey::new(text)),
            idempotency_key: self.idempotency_key(8),
            trace: self.trace(9),
            priority: self.priority(2),
            headers: self.headers(13),
            accepted_at: self.timestamp(3, "accepted_at").unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }

    /// The content type at `index` and the payload in the next column.
    fn payload(&mut self, index: usize) -> Payload {
        let content_type =
            self.parse(index, "content_type", |text| ContentType::new(text)).unwrap_or_default();
        let bytes = self.bytes(index + 1).unwrap_or_default().to_vec();
        Payload::new(bytes, content_type).unwrap_or_else(|_| {
            self.fail("payload");
            Payload::new(Vec::new(), ContentType::default()).expect("no bytes are within the bound")
        })
    }

    fn priority(&mut self, index: usize) -> Priority {
        let rank = self.integer(index).and_then(|rank| u8::try_from(rank).ok());
        rank.and_then(Priority::from_rank).unwrap_or_else(|| {
            self.fail("priority");
            Priority::default()
        })
    }

    fn headers(&mut self, index: usize) -> Headers {
        let Some(json) = self.bytes(index) else { return Headers::default() };
        serde_json::from_slice(json).unwrap_or_else(|_| {
            self.fail("headers");
            Headers::default()
        })
    }

    /// A message and where it stands. Columns, after those of [`envelope`](Self::envelope):
    ///
    /// | 14 | 15 | 16 | 17 | 18 | 19 | 20 | 21 |
    /// |---|---|---|---|---|---|---|---|
    /// | endpoint | contract | version | status | generation | attempt | `due_at` | `ended_at` |
    ///
    /// | 22 | 23 | 24 | 25 | 26 | 27 | 28 |
    /// |---|---|---|---|---|---|---|
    /// | `leased_until` | `leased_by` | `cancel_requested` | `waits_behind` (an id) | handoff (JSON) | reason | error |
    pub fn record(mut self) -> Read<MessageRecord> {
        let endpoint = self.endpoint(14);
        let contract = self.contract(15);
        let record = MessageRecord {
            envelope: self.envelope(endpoint, contract),
            status: self.status(17),
            attempt: self.attempt(18),
            due_at: self.timestamp(20, "due_at"),
            ended_at: self.timestamp(21, "ended_at"),
            leased_until: self.timestamp(22, "leased_until"),
            leased_by: self.text(23, "leased_by"),
            cancel_requested: self.integer(24) == Some(1),
            waits_behind: self.other_id(25),
            handoff: self.handoff(26),
            reason: self.label::<Reason>(27, "reason"),
            error: self.text(28, "error").map(ErrorText::from),
        };
        self.done(record)
    }

    fn handoff(&mut self, index: usize) -> Option<Handoff> {
        let found = serde_json::from_slice(self.bytes(index)?).ok();
        if found.is_none() {
            self.fail("handoff");
        }
        found
    }

    /// Whose outcome it is, and what. Columns:
    ///
    /// | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
    /// |---|---|---|---|---|---|---|
    /// | seq | generation | attempt | kind (see [`code_of_kind`](super::code_of_kind)) | reason | error | at |
    pub fn outcome(mut self) -> Read<(i64, Option<OutcomeRecord>)> {
        let seq = self.integer(0).unwrap_or_default();
        let kind = self.integer(3).and_then(kind_of_code);
        if kind.is_none() {
            self.fail("outcome");
        }
        let at = self.timestamp(6, "at").unwrap_or(Timestamp::UNIX_EPOCH);
        let (attempt, reason) = (self.attempt(1), self.label::<Reason>(4, "reason"));
        let error = self.text(5, "error").map(ErrorText::from);
        let record = kind.map(|kind| OutcomeRecord { attempt, kind, reason, error, at });
        self.done((seq, record))
    }
}
