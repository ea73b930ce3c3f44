//! What is read back, and what stands in for a value that cannot be.

use super::*;
use crate::store::MessageRecord;
use crate::{EndpointName, Idempotency, MessageId, OutcomeKind, Reason, Status, StoreErrorKind};
use std::collections::HashMap;

#[derive(Debug, Clone)]
enum Value {
    Bytes(Vec<u8>),
    Integer(i64),
}

/// A row of nothing but what a test puts in.
#[derive(Debug, Clone, Default)]
struct Row(HashMap<usize, Value>);

impl Row {
    fn text(mut self, index: usize, text: impl AsRef<[u8]>) -> Self {
        self.0.insert(index, Value::Bytes(text.as_ref().to_vec()));
        self
    }

    fn integer(mut self, index: usize, integer: i64) -> Self {
        self.0.insert(index, Value::Integer(integer));
        self
    }
}

impl Columns for Row {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        match self.0.get(&index)? {
            Value::Bytes(bytes) => Some(bytes),
            Value::Integer(_) => None,
        }
    }

    fn integer(&self, index: usize) -> Option<i64> {
        match self.0.get(&index)? {
            Value::Integer(integer) => Some(*integer),
            Value::Bytes(_) => None,
        }
    }
}

/// A pending message, as a store gives it back.
fn whole() -> Row {
    let row = Row::default().integer(0, 5).text(1, MessageId::generate().as_uuid().as_bytes()).integer(2, 1);
    let row = row.integer(3, 1_000_000).text(4, "application/json").text(5, "{}").text(6, "acme");
    let row = row.text(7, "a session").text(8, "a key").text(11, "a conversation").text(13, r#"{"a":"b"}"#);
    let row = row.text(14, "mail").text(15, "test.read").integer(16, 2).text(17, "pending");
    row.integer(18, 1).integer(19, 3).integer(20, 2_000_000).text(27, "timed_out").text(28, "too slow")
}

fn record(row: &Row) -> Read<MessageRecord> {
    RowReader::new(row).record()
}

#[test]
fn a_record_is_read_from_its_columns() {
    let Read { value, defect } = record(&whole());
    assert_eq!(defect, None);
    let envelope = &value.envelope;
    assert_eq!((envelope.seq.0, envelope.endpoint.as_str(), envelope.contract.version()), (5, "mail", 2));
    assert_eq!(envelope.tenant.as_ref().map(AsRef::as_ref), Some("acme"));
    assert_eq!(envelope.session.as_ref().map(AsRef::as_ref), Some("a session"));
    assert_eq!(envelope.idempotency_key.as_ref().map(AsRef::as_ref), Some("a key"));
    assert_eq!(envelope.trace.correlation().map(AsRef::as_ref), Some("a conversation"));
    assert_eq!((&envelope.payload.bytes()[..], envelope.headers.is_empty()), (&b"{}"[..], false));
    assert_eq!((value.status, value.attempt.generation, value.attempt.number), (Status::Pending, 1, 3));
    assert_eq!((value.due_at, value.ended_at), (Some(instant(2_000_000)), None));
    assert_eq!(value.reason, Some(Reason::TimedOut));
    assert_eq!(value.error.as_ref().map(crate::ErrorText::as_str), Some("too slow"));
}

#[test]
fn what_cannot_be_read_is_named_and_shown_as_far_as_possible() {
    #[track_caller]
    fn check(row: Row, field: &str) -> MessageRecord {
        let read = record(&row);
        assert_eq!(read.defect, Some(field));
        read.value
    }
    assert_eq!(check(whole().text(1, "short"), "id").envelope.id, id_of_place(5));
    assert_eq!(check(whole().text(1, [0; 16]), "id").envelope.id, id_of_place(5));
    let tenant = check(whole().text(6, "ac\u{0}me"), "tenant").envelope.tenant;
    assert_eq!(tenant.map(String::from).as_deref(), Some("ac\u{fffd}me"));
    let tenant = check(whole().text(6, b"\xff"), "tenant").envelope.tenant;
    assert_eq!(tenant.map(String::from).as_deref(), Some("\u{fffd}"));
    let tenant = check(whole().text(6, " "), "tenant").envelope.tenant;
    assert_eq!(tenant.map(String::from).as_deref(), Some("(unreadable)"));
    assert_eq!(check(whole().integer(16, 0), "contract").envelope.contract.version(), 1);
    assert!(check(whole().text(13, "{"), "headers").envelope.headers.is_empty());
    assert_eq!(check(whole().text(17, "lost"), "status").status, Status::Pending);
    assert_eq!(check(whole().integer(20, i64::MAX), "due_at").due_at, None);
    let first = check(whole().text(13, "{").integer(14, 7), "endpoint");
    assert_eq!(first.envelope.endpoint, EndpointName::default(), "the first defect counts");
}

#[test]
fn an_outcome_of_an_unknown_kind_is_none() {
    let row = Row::default().integer(0, 5).integer(2, 1).integer(3, code_of_kind(OutcomeKind::Retried));
    let row = row.text(4, "failed").integer(6, 0);
    let Read { value: (seq, outcome), defect } = RowReader::new(&row).outcome();
    assert_eq!((seq, defect), (5, None));
    assert_eq!(outcome.map(|outcome| (outcome.kind, outcome.reason)), {
        Some((OutcomeKind::Retried, Some(Reason::Failed)))
    });
    let Read { value: (_, outcome), defect } = RowReader::new(&row.integer(3, 99)).outcome();
    assert_eq!((outcome, defect), (None, Some("outcome")));
}

#[test]
fn details_join_histories_and_refuse_damage() {
    let outcome = |kind| Row::default().integer(0, 5).integer(3, kind).integer(6, 0);
    let read = |kind| RowReader::new(&outcome(kind)).outcome();
    let whole_one = details([record(&whole())], [read(1), read(4)]).unwrap();
    assert_eq!(whole_one[0].history.iter().map(|outcome| outcome.kind).collect::<Vec<_>>(), {
        [OutcomeKind::Retried, OutcomeKind::Completed]
    });
    let damaged = details([record(&whole().text(13, "{"))], []).unwrap_err();
    assert_eq!(damaged.kind(), StoreErrorKind::Corrupt);
    assert!(damaged.to_string().contains("`headers` of the message at place 5"), "{damaged}");
    assert!(details([record(&whole())], [read(99)]).is_err());
}

#[test]
fn ledger_keys_of_a_stored_message_are_those_of_the_accepted_one() {
    let contract = crate::Contract::new("test.keys", 1).unwrap();
    let payload = crate::Payload::new("{}", crate::ContentType::default()).unwrap();
    let metadata = crate::Metadata {
        identity: crate::Identity::Supplied(MessageId::generate()),
        idempotency: Idempotency::keyed(crate::IdempotencyKey::new("k").unwrap()),
        tenant: Some(crate::TenantName::new("acme").unwrap()),
        ..crate::Metadata::default()
    };
    let message = crate::NewMessage::new(contract, payload, metadata);
    let row = Row::default().integer(0, 5).text(1, message.id.as_uuid().as_bytes()).integer(2, 1);
    let row = row.text(3, "acme").text(4, "k");
    assert_eq!(RowReader::new(&row).ledger_keys(), (5, message.ledger_keys_by_kind()));
    let (_, keys) = RowReader::new(&row.integer(2, 0)).ledger_keys();
    assert_eq!((keys.id, keys.key.is_some()), (None, true), "an id that was made protects nothing");
}

#[test]
fn a_redrive_that_cannot_be_read_is_an_error() {
    let row = Row::default().integer(0, 1).text(1, r#"{"tenant":"acme"}"#).integer(2, 10).text(3, "running");
    let row = row.integer(4, 7).integer(5, 2).integer(6, 0).integer(7, 1).integer(8, 20).integer(9, 50);
    let walk = RowReader::new(&row).redrive("redrives").unwrap();
    assert_eq!((walk.redrive.total, walk.redrive.requeued, walk.stretch()), (7, 2, (20, 50)));
    for damaged in [row.clone().text(1, "{"), row.clone().integer(2, -1), row.text(3, "walking")] {
        let error = RowReader::new(&damaged).redrive("redrives").unwrap_err();
        assert_eq!((error.kind(), error.operation()), (StoreErrorKind::Corrupt, "redrives"));
    }
}
