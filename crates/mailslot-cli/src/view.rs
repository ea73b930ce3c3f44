//! Messages as JSON: stable names for programs, and no payload unless it was asked for.

use jiff::Timestamp;
use mailslot::store::{MessageDetail, MessageRecord};
use mailslot::{
    Attempt, CausationId, Contract, CorrelationId, EndpointName, Envelope, ErrorText, Handoff, Headers,
    IdempotencyKey, MessageId, OutcomeRecord, Priority, Reason, SessionKey, Status, TenantName, TraceContext,
};
use serde::Serialize;
use std::fmt::Write as _;

/// A message and where it stands.
#[derive(Debug, Serialize)]
pub(crate) struct MessageView<'a> {
    id: MessageId,
    status: Status,
    endpoint: &'a EndpointName,
    contract: &'a Contract,
    accepted_at: Timestamp,
    attempt: Attempt,
    priority: Priority,
    content_type: &'a str,
    payload_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a TenantName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a SessionKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a IdempotencyKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<&'a CorrelationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation: Option<&'a CausationId>,
    #[serde(flatten)]
    trace: Option<&'a TraceContext>,
    #[serde(skip_serializing_if = "Headers::is_empty")]
    headers: &'a Headers,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leased_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leased_by: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_behind: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff: Option<&'a Handoff>,
}

impl<'a> From<&'a MessageRecord> for MessageView<'a> {
    fn from(record: &'a MessageRecord) -> Self {
        let envelope = &record.envelope;
        Self {
            id: envelope.id,
            status: record.status,
            endpoint: &envelope.endpoint,
            contract: &envelope.contract,
            accepted_at: envelope.accepted_at,
            attempt: record.attempt,
            priority: envelope.priority,
            content_type: envelope.payload.content_type().as_str(),
            payload_bytes: envelope.payload.bytes().len(),
            tenant: envelope.tenant.as_ref(),
            session: envelope.session.as_ref(),
            key: envelope.idempotency_key.as_ref(),
            correlation: envelope.trace.correlation(),
            causation: envelope.trace.causation(),
            trace: envelope.trace.context(),
            headers: &envelope.headers,
            due_at: record.due_at,
            reason: record.reason,
            error: record.error.as_ref(),
            ended_at: record.ended_at,
            leased_until: record.leased_until,
            leased_by: record.leased_by.as_deref(),
            cancel_requested: record.cancel_requested,
            waits_behind: record.waits_behind,
            handoff: record.handoff.as_ref(),
        }
    }
}

/// A message with its history, why it waits, and its payload if it was asked for.
#[derive(Debug, Serialize)]
pub(crate) struct DetailView<'a> {
    #[serde(flatten)]
    message: MessageView<'a>,
    why: &'a str,
    history: &'a [OutcomeRecord],
    #[serde(flatten)]
    payload: Option<PayloadView<'a>>,
}

impl<'a> DetailView<'a> {
    /// `why` says in words where the message stands.
    pub(crate) fn new(detail: &'a MessageDetail, why: &'a str, with_payload: bool) -> Self {
        let payload = with_payload.then(|| PayloadView::of(&detail.record.envelope));
        Self { message: (&detail.record).into(), why, history: &detail.history, payload }
    }
}

/// The payload: as text if it is UTF-8, else in hexadecimal digits, so that every byte comes through.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum PayloadView<'a> {
    Payload(&'a str),
    PayloadHex(String),
}

impl<'a> PayloadView<'a> {
    fn of(envelope: &'a Envelope) -> Self {
        let bytes = envelope.payload.bytes();
        str::from_utf8(bytes).map_or_else(|_| Self::PayloadHex(hex(bytes)), Self::Payload)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A payload for people: text in which nothing can steer the terminal, or a remark that it is none.
pub(crate) fn payload_text(envelope: &Envelope) -> String {
    let bytes = envelope.payload.bytes();
    let Ok(text) = str::from_utf8(bytes) else {
        return "(not UTF-8: add --raw to write its bytes to a file)".into();
    };
    let plain =
        |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(plain).collect()
}
