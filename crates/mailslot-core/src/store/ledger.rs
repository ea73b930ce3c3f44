//! What a store remembers of the deliveries that subscribers handled.
//!
//! A delivery that was handled at once leaves a record. One that was stored instead, because it has to wait or to be tried
//! again, leaves a record that points to the stored message: what that one has come to is the answer. So nothing has to be
//! recorded when a retry, a resubmission or a replay succeeds, and no crash can fall in between.

use super::append::SessionRef;
use super::lease::check_lease_duration;
use crate::delivered::DeliveryIdentity;
use crate::error::StoreError;
use crate::field::FieldError;
use crate::id::MessageId;
use crate::limits::SETTLE_BATCH_MAX;
use crate::message::NewMessage;
use crate::metadata::Idempotency;
use crate::name::EndpointName;
use crate::outcome::{Disposition, ErrorText};
use crate::state::Status;
use async_trait::async_trait;
use jiff::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// Remembers deliveries.
#[async_trait]
pub trait LedgerStore: Send + Sync + 'static {
    /// What is known of deliveries and of their sessions, one answer for each, in order.
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError>;

    /// Records or stores what deliveries have come to, each for itself, all in one transaction.
    ///
    /// Repeating it changes nothing: the first record and its time stay. One answer for each, in order.
    ///
    /// # Errors
    /// More than [`SETTLE_BATCH_MAX`](crate::limits::SETTLE_BATCH_MAX), a message that passes a bound, or the store failed.
    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError>;

    /// Keeps others from handling a delivery for so long. A claim that is over may be taken by anyone, and one's own may be
    /// prolonged.
    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError>;

    /// Gives a claim up, if it is still the owner's.
    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError>;

    /// Deletes at most `limit` records of an endpoint that are older than `retention` by the store's clock, oldest first.
    /// Returns how many. Those that point to a stored message go with it.
    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError>;
}

/// What is asked about a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The delivery. `None`: only its session is asked about.
    pub identity: Option<DeliveryIdentity>,
    /// Its session, if it is in one.
    pub session: Option<SessionRef>,
}

/// What is known of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lookup {
    /// What it has come to before.
    pub known: Option<Known>,
    /// The stored message that its session waits for.
    pub blocked_by: Option<MessageId>,
}

/// What a delivery has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It was handled.
    Completed,
    /// It was stored; this is how far the stored message is. A completed one was handled.
    Stored {
        /// The stored message.
        id: MessageId,
        /// Where it stands.
        status: Status,
    },
    /// Somebody handles it at present.
    Claimed {
        /// Until when, by the store's clock.
        until: Timestamp,
    },
}

impl Known {
    /// Whether its handler has succeeded.
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed | Self::Stored { status: Status::Completed, .. })
    }
}

/// What a delivery has come to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// Its handler succeeded.
    Handled(DeliveryIdentity),
    /// It is to be stored.
    Store(Box<Stored>),
}

/// A delivery that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it is recognised by. `None`: it cannot be.
    pub identity: Option<DeliveryIdentity>,
    /// Its message on the subscriber's endpoint.
    pub message: NewMessage,
    /// What its handler decided, with the error behind it. `None`: it has not run, and the message waits: for the head of
    /// its session, or only for a worker if its session is free by now.
    pub handled: Option<(Disposition, Option<ErrorText>)>,
}

/// What became of a conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concluded {
    /// It is recorded, now or before.
    Recorded,
    /// It is stored and stands here. If its session was taken meanwhile, it waits, whatever its handler decided.
    Stored {
        /// The stored message.
        id: MessageId,
        /// Where it stands.
        status: Status,
    },
    /// Nothing was stored: it had come to this before.
    Known(Known),
    /// Nothing was stored: too many messages wait in its session.
    SessionFull,
}

/// The wish to be the only one who handles a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The delivery.
    pub identity: DeliveryIdentity,
    /// Who wants it: one for each delivery that is being handled.
    pub owner: Uuid,
    /// For how long.
    pub duration: Duration,
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// It is the owner's until then.
    Granted {
        /// By the store's clock.
        until: Timestamp,
    },
    /// It is not: this is known of it.
    Refused(Known),
}

impl Question {
    /// Checks what was asked for.
    ///
    /// # Errors
    /// Too many questions.
    pub fn check_all(questions: &[Self]) -> Result<(), FieldError> {
        check_count("questions", questions.len())
    }
}

impl Conclusion {
    /// Checks what is to be concluded.
    ///
    /// # Errors
    /// Too many conclusions, or one that cannot be stored.
    pub fn check_all(conclusions: &[Self]) -> Result<(), FieldError> {
        check_count("conclusions", conclusions.len())?;
        let stored = conclusions.iter().filter_map(|conclusion| match conclusion {
            Self::Store(stored) => Some(stored),
            Self::Handled(_) => None,
        });
        stored.into_iter().try_for_each(|stored| stored.check())
    }
}

impl Stored {
    fn check(&self) -> Result<(), FieldError> {
        let Self { identity, message, handled } = self;
        if message.id_supplied || message.metadata.idempotency != Idempotency::None {
            let fix = "leave both out: the delivery's identity is what it is recognised by";
            return Err(FieldError::new("message", "has a supplied id or an idempotency key", fix));
        }
        if identity.as_ref().is_some_and(|identity| *identity.endpoint() != message.metadata.endpoint) {
            let fix = "store it on the endpoint that it was delivered to";
            return Err(FieldError::new("message.endpoint", "is not that of the delivery", fix));
        }
        if matches!(handled, Some((Disposition::Release, _))) {
            let fix = "leave the delivery to the broker, or store it as not handled";
            return Err(FieldError::new("handled", "gives back what was never leased", fix));
        }
        Ok(())
    }
}

impl Claim {
    /// Checks what is claimed.
    ///
    /// # Errors
    /// A duration that no lease may have.
    pub fn check(&self) -> Result<(), FieldError> {
        check_lease_duration(self.duration)
    }
}

fn check_count(field: &'static str, count: usize) -> Result<(), FieldError> {
    if count > SETTLE_BATCH_MAX {
        let fix = format!("send at most {SETTLE_BATCH_MAX} at once");
        return Err(FieldError::new(field, format!("are {count}"), fix));
    }
    Ok(())
}
