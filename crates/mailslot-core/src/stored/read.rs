//! Reading a row, value by value.

use super::time::instant;
use crate::contract::Contract;
use crate::field::FieldError;
use crate::id::{Attempt, MessageId};
use crate::name::{CausationId, CorrelationId, EndpointName, IdempotencyKey, TenantName};
use crate::state::Status;
use crate::store::Known;
use crate::trace::{Trace, TraceContext};
use jiff::Timestamp;
use std::str::FromStr;
use uuid::Uuid;

/// What stands where a text could not be read at all.
const UNREADABLE: &str = "(unreadable)";

/// Longest part of an unreadable text that is shown.
const SHOWN_CHARS: usize = 100;

/// A row of a store, by column. A column of another kind than the one asked for reads as absent.
pub trait Columns {
    /// Text (JSON too), bytes, or the 16 bytes of an id. `None`: NULL or absent.
    fn bytes(&self, index: usize) -> Option<&[u8]>;

    /// A number; a yes or no as 1 or 0; a time as microseconds since 1970. `None`: NULL or absent.
    fn integer(&self, index: usize) -> Option<i64>;
}

/// A row that is being read.
#[derive(Debug)]
pub struct RowReader<'r, R> {
    row: &'r R,
    /// The first value that could not be read.
    defect: Option<&'static str>,
}

/// A value and the first defect of the row that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read<T> {
    /// The value, with something that can be shown in place of what could not be read.
    pub value: T,
    /// The name of the first column that could not be read.
    pub defect: Option<&'static str>,
}

impl<'r, R: Columns> RowReader<'r, R> {
    /// Begins to read a row.
    pub fn new(row: &'r R) -> Self {
        Self { row, defect: None }
    }

    /// Ends the reading: the value that was made of it, with the defect that was met.
    pub fn done<T>(self, value: T) -> Read<T> {
        Read { value, defect: self.defect }
    }

    pub(super) fn fail(&mut self, field: &'static str) {
        self.defect.get_or_insert(field);
    }

    /// Bytes as they are.
    pub fn bytes(&self, index: usize) -> Option<&'r [u8]> {
        self.row.bytes(index)
    }

    /// A number as it is.
    pub fn integer(&self, index: usize) -> Option<i64> {
        self.row.integer(index)
    }

    /// A number of things; 0 for what is none.
    pub fn count(&self, index: usize) -> u64 {
        self.integer(index).and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
    }

    /// A text without rules.
    pub fn text(&mut self, index: usize, field: &'static str) -> Option<String> {
        self.parse(index, field, |text| Ok::<_, FieldError>(text.to_owned()))
    }

    /// A text as its type, or what can be shown of it.
    pub(super) fn parse<T, E>(
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

    /// A time.
    pub fn timestamp(&mut self, index: usize, field: &'static str) -> Option<Timestamp> {
        let found = Timestamp::from_microsecond(self.integer(index)?).ok();
        if found.is_none() {
            self.fail(field);
        }
        found
    }

    /// An id; the message's place stands in for one that cannot be read.
    pub fn id(&mut self, index: usize, seq: i64) -> MessageId {
        let found = self.bytes(index).and_then(|bytes| Uuid::from_slice(bytes).ok());
        found.and_then(|id| MessageId::supplied(id).ok()).unwrap_or_else(|| {
            self.fail("id");
            id_of_place(seq)
        })
    }

    /// The id of another message, if one is named.
    pub fn other_id(&mut self, index: usize) -> Option<MessageId> {
        self.bytes(index).is_some().then(|| self.id(index, 0))
    }

    /// A tenant.
    pub fn tenant(&mut self, index: usize) -> Option<TenantName> {
        self.parse(index, "tenant", |text| TenantName::new(text))
    }

    /// An idempotency key.
    pub fn idempotency_key(&mut self, index: usize) -> Option<IdempotencyKey> {
        self.parse(index, "idempotency_key", |text| IdempotencyKey::new(text))
    }

    /// An endpoint.
    pub fn endpoint(&mut self, index: usize) -> EndpointName {
        self.parse(index, "endpoint", |text| EndpointName::new(text)).unwrap_or_else(|| {
            self.fail("endpoint");
            EndpointName::default()
        })
    }

    /// A contract's name at `index` and its version in the next column.
    pub fn contract(&mut self, index: usize) -> Contract {
        let version = self.integer(index + 1).and_then(|version| u32::try_from(version).ok());
        let version = version.filter(|version| i32::try_from(*version).is_ok_and(|version| version > 0));
        if version.is_none() {
            self.fail("contract");
        }
        let version = version.unwrap_or(1);
        let contract = self.parse(index, "contract", |text| Contract::new(text, version));
        contract.unwrap_or_else(|| {
            self.fail("contract");
            unreadable(version)
        })
    }

    /// `traceparent` at `index`, and in the next columns `tracestate`, correlation and causation.
    pub fn trace(&mut self, index: usize) -> Trace {
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

    /// A word of a closed list.
    pub fn label<T: FromStr>(&mut self, index: usize, field: &'static str) -> Option<T> {
        let text = self.bytes(index)?;
        let found = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        if found.is_none() {
            self.fail(field);
        }
        found
    }

    /// Where a message stands.
    pub fn status(&mut self, index: usize) -> Status {
        self.label(index, "status").unwrap_or_else(|| {
            // A message that is nowhere: `doctor` says so. Shown as pending, without a due time.
            self.fail("status");
            Status::Pending
        })
    }

    /// What is known of a delivery: at `index` the time of its record, and in the next columns whether that is the end of
    /// a claim, and the id and status of its message, if it has one.
    pub fn known(&mut self, index: usize) -> Known {
        if self.integer(index + 1).is_some_and(|claimed| claimed != 0) {
            return Known::Claimed { until: instant(self.integer(index).unwrap_or_default()) };
        }
        match self.other_id(index + 2) {
            Some(id) => Known::Stored { id, status: self.status(index + 3) },
            None => Known::Completed,
        }
    }

    /// A generation at `index` and the number of the attempt in the next column.
    pub fn attempt(&self, index: usize) -> Attempt {
        let part = |index| self.integer(index).and_then(|part| u32::try_from(part).ok()).unwrap_or_default();
        Attempt { generation: part(index), number: part(index + 1) }
    }
}

/// Stands in for an id that cannot be read.
pub fn id_of_place(seq: i64) -> MessageId {
    numbered(seq.unsigned_abs().max(1))
}

fn numbered(number: u64) -> MessageId {
    MessageId::supplied(Uuid::from_u128(number.into())).expect("the number is not zero")
}

fn unreadable(version: u32) -> Contract {
    Contract::new(UNREADABLE, version).expect("a plain word and a checked version are a contract")
}

fn showable(bytes: &[u8]) -> String {
    let clean = |c: char| if c.is_control() || c == '@' { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().take(SHOWN_CHARS).map(clean).collect()
}
