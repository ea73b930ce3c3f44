//! Reading rows. A stored value that cannot be what it should be is replaced by something that can be shown, and the
//! defect is kept: a claim refuses such a row, `get` reports it, `query` shows what is left of it.

use jiff::Timestamp;
use mailslot_core::store::MessageRecord;
use mailslot_core::{
    Attempt, CausationId, ContentType, Contract, CorrelationId, EndpointName, Envelope, ErrorText,
    FieldError, Handoff, Headers, IdempotencyKey, KeyPolicy, MessageId, OutcomeKind, OutcomeRecord, Payload,
    Priority, Reason, Seq, SessionKey, Status, TenantName, Trace, TraceContext,
};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use std::str::FromStr;
use uuid::Uuid;

/// What stands where a text could not be read at all.
const UNREADABLE: &str = "(unreadable)";

/// Longest part of an unreadable text that is shown.
const SHOWN_CHARS: usize = 100;

/// A row that is being read.
pub(crate) struct RowReader<'r> {
    row: &'r SqliteRow,
    /// The first value that could not be read.
    defect: Option<&'static str>,
}

/// A value and the first defect of the row that it came from.
#[derive(Debug, Clone)]
pub(crate) struct Read<T> {
    pub(crate) value: T,
    pub(crate) defect: Option<&'static str>,
}

impl<'r> RowReader<'r> {
    pub(crate) fn new(row: &'r SqliteRow) -> Self {
        Self { row, defect: None }
    }

    pub(crate) fn done<T>(self, value: T) -> Read<T> {
        Read { value, defect: self.defect }
    }

    fn fail(&mut self, field: &'static str) {
        self.defect.get_or_insert(field);
    }

    pub(crate) fn bytes(&self, index: usize) -> Option<&'r [u8]> {
        self.row.try_get_unchecked(index).ok().flatten()
    }

    pub(crate) fn integer(&self, index: usize) -> Option<i64> {
        self.row.try_get_unchecked(index).ok().flatten()
    }

    pub(crate) fn count(&self, index: usize) -> u64 {
        self.integer(index).and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
    }

    pub(crate) fn text(&mut self, index: usize, field: &'static str) -> Option<String> {
        self.parse(index, field, |text| Ok::<_, FieldError>(text.to_owned()))
    }

    /// A text as its type, or what can be shown of it.
    fn parse<T, E>(
        &mut self,
        index: usize,
        field: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let bytes = self.bytes(index)?;
        if let Ok(value) =
            std::str::from_utf8(bytes).map_err(|_| ()).and_then(|text| parse(text).map_err(|_| ()))
        {
            return Some(value);
        }
        self.fail(field);
        parse(&showable(bytes)).or_else(|_| parse(UNREADABLE)).ok()
    }

    pub(crate) fn timestamp(&mut self, index: usize, field: &'static str) -> Option<Timestamp> {
        let found = Timestamp::from_microsecond(self.integer(index)?).ok();
        if found.is_none() {
            self.fail(field);
        }
        found
    }

    /// An id; the message's place stands in for one that cannot be read.
    pub(crate) fn id(&mut self, index: usize, seq: i64) -> MessageId {
        let found = self.bytes(index).and_then(|bytes| Uuid::from_slice(bytes).ok());
        found.and_then(|id| MessageId::supplied(id).ok()).unwrap_or_else(|| {
            self.fail("id");
            id_of_place(seq)
        })
    }

    pub(crate) fn other_id(&mut self, index: usize) -> Option<MessageId> {
        self.bytes(index).is_some().then(|| self.id(index, 0))
    }

    pub(crate) fn tenant(&mut self, index: usize) -> Option<TenantName> {
        self.parse(index, "tenant", |text| TenantName::new(text))
    }

    pub(crate) fn idempotency_key(&mut self, index: usize) -> Option<IdempotencyKey> {
        self.parse(index, "idempotency_key", |text| IdempotencyKey::new(text))
    }

    pub(crate) fn endpoint(&mut self, index: usize) -> EndpointName {
        self.parse(index, "endpoint", |text| EndpointName::new(text)).unwrap_or_else(|| {
            self.fail("endpoint");
            EndpointName::default()
        })
    }

    /// A contract's name at `index` and its version in the next column.
    pub(crate) fn contract(&mut self, index: usize) -> Contract {
        let version = self.integer(index + 1).and_then(|version| u32::try_from(version).ok());
        let version = version.filter(|version| i32::try_from(*version).is_ok_and(|version| version > 0));
        if version.is_none() {
            self.fail("contract");
        }
        let version = version.unwrap_or(1);
        let contract = self.parse(index, "contract", |text| Contract::new(text, version));
        contract.unwrap_or_else(|| {
            self.fail("contract");
            Contract::new(UNREADABLE, version).expect("a plain word and a checked version are a contract")
        })
    }

    /// `traceparent` at `index`, and in the next columns `tracestate`, correlation and causation.
    pub(crate) fn trace(&mut self, index: usize) -> Trace {
        let traceparent = self.text(index, "traceparent");
        let tracestate = self.text(index + 1, "tracestate");
        let context = traceparent.and_then(|traceparent| {
            let context = TraceContext::new(traceparent, tracestate).ok();
            if context.is_none() {
                self.fail("traceparent");
            }
            context
        });
        let correlation = self.parse(index + 2, "correlation", |text| CorrelationId::new(text));
        let causation = self.parse(index + 3, "causation", |text| CausationId::new(text));
        Trace::from_parts(context, correlation, causation).unwrap_or_else(|_| {
            self.fail("causation");
            Trace::None
        })
    }

    pub(crate) fn label<T: FromStr>(&mut self, index: usize, field: &'static str) -> Option<T> {
        let text = self.bytes(index)?;
        let found = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        if found.is_none() {
            self.fail(field);
        }
        found
    }

    pub(crate) fn status(&mut self, index: usize) -> Status {
        self.label(index, "status").unwrap_or_else(|| {
            // A message that is nowhere: `doctor` says so. Shown as pending, without a due time.
            self.fail("status");
            Status::Pending
        })
    }

    pub(crate) fn attempt(&self, index: usize) -> Attempt {
        let part = |index| self.integer(index).and_then(|part| u32::try_from(part).ok()).unwrap_or_default();
        Attempt { generation: part(index), number: part(index + 1) }
    }

    /// The columns of `message/claim.sql`, from 0.
    pub(crate) fn envelope(&mut self, endpoint: EndpointName, contract: Contract) -> Envelope {
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

    /// The columns of `message/read.sql`.
    pub(crate) fn record(mut self) -> Read<MessageRecord> {
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

    /// The columns of `outcome/read.sql`: whose it is, and what.
    pub(crate) fn outcome(mut self) -> Read<(i64, Option<OutcomeRecord>)> {
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

/// Stands in for an id that cannot be read.
pub(crate) fn id_of_place(seq: i64) -> MessageId {
    let id = Uuid::from_u128(u128::from(seq.unsigned_abs().max(1)));
    MessageId::supplied(id).expect("the number is not zero")
}

fn showable(bytes: &[u8]) -> String {
    let clean = |c: char| if c.is_control() || c == '@' { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().take(SHOWN_CHARS).map(clean).collect()
}

/// Microseconds since 1970, as every time is stored. A part of one is rounded up: nothing becomes due too early.
pub(crate) fn micros(at: Timestamp) -> i64 {
    // The calendar ends within a second of which no microseconds can be read back.
    let last = Timestamp::MAX.as_second() * 1_000_000;
    let whole = at.as_microsecond();
    let rest = at.as_nanosecond() - i128::from(whole) * 1000;
    (if rest > 0 { whole + 1 } else { whole }).min(last)
}

pub(crate) fn instant(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// The order of the numbers is that in which things happen to one attempt: see the migration.
pub(crate) fn code_of_kind(kind: OutcomeKind) -> i64 {
    match kind {
        OutcomeKind::Retried => 1,
        OutcomeKind::Expired => 2,
        OutcomeKind::Suspended => 3,
        OutcomeKind::Completed => 4,
        OutcomeKind::Skipped => 5,
        OutcomeKind::DeadLettered => 6,
        OutcomeKind::Cancelled => 7,
        OutcomeKind::Requeued => 8,
    }
}

fn kind_of_code(code: i64) -> Option<OutcomeKind> {
    OutcomeKind::ALL.iter().copied().find(|kind| code_of_kind(*kind) == code)
}

pub(crate) fn code_of_policy(policy: KeyPolicy) -> i64 {
    match policy {
        KeyPolicy::Retained => 0,
        KeyPolicy::UntilFinished => UNTIL_FINISHED,
        KeyPolicy::UntilStarted => UNTIL_STARTED,
    }
}

/// The stored form of [`KeyPolicy::UntilFinished`].
pub(crate) const UNTIL_FINISHED: i64 = 1;

/// The stored form of [`KeyPolicy::UntilStarted`].
pub(crate) const UNTIL_STARTED: i64 = 2;

/// A JSON array as the parameter of a statement.
pub(crate) fn json<T: serde::Serialize>(values: &[T]) -> String {
    serde_json::to_string(values).expect("numbers and texts always have a JSON form")
}
