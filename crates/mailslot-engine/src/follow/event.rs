//! What followers are told.

use mailslot_core::breaker::Circuit;
use mailslot_core::{
    Arrived, Contract, Disposition, EndpointName, Envelope, ErrorText, MessageId, NewMessage, Reason,
    SessionKey,
};
use std::fmt;
use std::sync::Arc;

/// What became of one attempt or one delivery. Never with the message's content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutcomeEvent {
    /// Where it was handled.
    pub endpoint: EndpointName,
    /// What it is. `None`: nobody could read it, or only its id is at hand.
    pub contract: Option<Contract>,
    /// Which message it is.
    pub subject: Subject,
    /// Its session, if it is in one.
    pub session: Option<SessionKey>,
    /// The stored message that its session waits for, if that is why it waits.
    pub blocked_by: Option<MessageId>,
    /// Which attempt this was, from 1; 0: its handler did not run.
    pub attempt: u32,
    /// What became of it.
    pub kind: EventKind,
    /// Why, if it is not a plain success.
    pub reason: Option<Reason>,
    /// The text for operators.
    pub error: Option<ErrorText>,
}

/// Which message: by the id that the broker delivered, and by that of the stored message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    /// The publisher's id, if a broker delivered it and it can be recognised.
    pub delivered: Option<Arc<str>>,
    /// The stored message, or the one that it becomes if it is stored.
    pub stored: Option<MessageId>,
}

/// What became of a message: few and fixed, so that it can be a label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// Its handler succeeded.
    Completed,
    /// It failed and is tried again.
    Failed,
    /// It waits behind an earlier message of its session, or for a worker.
    Deferred,
    /// It ended unhandled on purpose; with the reason `duplicate_detected`, because it was handled before.
    Skipped,
    /// Its handler started work elsewhere.
    Pending,
    /// It ended without success.
    DeadLettered,
    /// No handler takes it.
    Unsupported,
}

impl EventKind {
    /// The printed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
            Self::Skipped => "skipped",
            Self::Pending => "pending",
            Self::DeadLettered => "dead_lettered",
            Self::Unsupported => "unsupported",
        }
    }
}

impl EventKind {
    /// The kind and the reason of what was decided. `None`: the message goes back as if nothing had been.
    pub(crate) fn of(disposition: &Disposition) -> Option<(Self, Option<Reason>)> {
        Some(match disposition {
            Disposition::Complete => (Self::Completed, None),
            Disposition::Retry { reason, .. } => (Self::Failed, Some(*reason)),
            Disposition::DeadLetter { reason: Reason::Unsupported } => {
                (Self::Unsupported, Some(Reason::Unsupported))
            }
            Disposition::DeadLetter { reason } => (Self::DeadLettered, Some(*reason)),
            Disposition::Skip { reason } => (Self::Skipped, Some(*reason)),
            Disposition::Suspend(_) => (Self::Pending, None),
            Disposition::Release => return None,
        })
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A moment in the life of a message or of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifecycle {
    /// A message is about to be handled, or to be recognised. Its outcome follows, unless it goes back unfinished.
    Received(Arc<OutcomeEvent>),
    /// This became of it.
    Ended(Arc<OutcomeEvent>),
    /// The circuit breaker of the endpoint has changed.
    Circuit {
        /// Whose.
        endpoint: EndpointName,
        /// How it stands now.
        circuit: Circuit,
    },
}

impl OutcomeEvent {
    /// A stored message that a worker has.
    pub(crate) fn of_stored(envelope: &Envelope, attempt: u32) -> Self {
        Self {
            endpoint: envelope.endpoint.clone(),
            contract: Some(envelope.contract.clone()),
            subject: Subject { delivered: None, stored: Some(envelope.id) },
            session: envelope.session.clone(),
            blocked_by: None,
            attempt,
            kind: EventKind::Pending,
            reason: None,
            error: None,
        }
    }

    /// A stored message that was dead-lettered instead of being leased: its attempts are used up because its workers crashed,
    /// or its row cannot be read. Only its id is at hand.
    pub(crate) fn of_refused(endpoint: &EndpointName, id: MessageId) -> Self {
        Self {
            endpoint: endpoint.clone(),
            contract: None,
            subject: Subject { delivered: None, stored: Some(id) },
            session: None,
            blocked_by: None,
            attempt: 0,
            kind: EventKind::DeadLettered,
            reason: None,
            error: None,
        }
    }

    /// A message that a broker delivered.
    pub(crate) fn of_arrival(message: &NewMessage, arrived: &Arrived) -> Self {
        let delivered = arrived.identity.as_ref().map(|identity| Arc::from(identity.message_id()));
        Self {
            endpoint: message.metadata.endpoint.clone(),
            contract: Some(message.contract.clone()),
            subject: Subject { delivered, stored: Some(message.id) },
            session: message.metadata.session.clone(),
            blocked_by: None,
            attempt: 0,
            kind: EventKind::Pending,
            reason: None,
            error: None,
        }
    }

    /// The same message with another outcome.
    pub(crate) fn became(&self, kind: EventKind, reason: Option<Reason>, error: Option<&ErrorText>) -> Self {
        Self { kind, reason, error: error.cloned(), ..self.clone() }
    }

    /// The same message with what was decided about it. `None`: it goes back as if nothing had been.
    pub(crate) fn decided(&self, disposition: &Disposition, error: Option<&ErrorText>) -> Option<Self> {
        let (kind, reason) = EventKind::of(disposition)?;
        Some(self.became(kind, reason, error))
    }
}
