//! Leasing and settling: requests and answers.

use crate::contract::Contract;
use crate::field::FieldError;
use crate::id::{Attempt, MessageId, Seq};
use crate::limits::{LEASE_BATCH_MAX, LEASE_MAX, LEASE_MIN, NAME_UNITS_MAX, SETTLE_BATCH_MAX};
use crate::message::Envelope;
use crate::name::{EndpointName, TenantName, check_text};
use crate::outcome::Settlement;
use crate::state::Status;
use jiff::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// Who holds a lease: a random id per process start, so that a restarted process is never taken for the dead one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    session: Uuid,
    label: String,
}

impl Owner {
    /// A new owner. The label is for people; it decides nothing.
    ///
    /// # Errors
    /// A blank, over-long or unprintable label.
    pub fn new(label: impl Into<String>) -> Result<Self, FieldError> {
        let label = label.into();
        check_text("owner", &label, NAME_UNITS_MAX)?;
        Ok(Self { session: Uuid::new_v4(), label })
    }

    /// The random part.
    pub fn session(&self) -> Uuid {
        self.session
    }

    /// The part for people, such as host and process id.
    pub fn label(&self) -> &str {
        &self.label
    }
}

/// The fence: it names one claim, and no later claim ever has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken {
    /// The owner's random part.
    pub owner: Uuid,
    /// Counts the claims of a store; never reused.
    pub generation: i64,
}

/// Messages of one endpoint and contract that a worker can handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRequest {
    /// Where they are handled.
    pub endpoint: EndpointName,
    /// What they are.
    pub contract: Contract,
    /// How many attempts they have: a message that used them up is dead-lettered when it would be leased.
    pub attempts_max: u32,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Who claims.
    pub owner: Owner,
    /// What may be claimed. What is not listed stays where it is.
    pub lanes: Vec<LaneRequest>,
    /// How many messages at most.
    pub limit: usize,
    /// For how long, by the store's clock.
    pub duration: Duration,
    /// Restricts the claim to one tenant. It then reads past the due messages of others, so give a busy tenant an
    /// endpoint of its own instead.
    pub tenant: Option<TenantName>,
    /// Restricts the claim to what was due at this instant: how a drain finds its end.
    pub due_until: Option<Timestamp>,
}

impl LeaseRequest {
    /// Checks the bounds.
    ///
    /// # Errors
    /// No or too many messages, a lane that is listed twice, or a duration out of bounds.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.limit == 0 || self.limit > LEASE_BATCH_MAX {
            let fix = format!("use 1 to {LEASE_BATCH_MAX}");
            return Err(FieldError::new("lease.limit", format!("is {}", self.limit), fix));
        }
        let mut lanes: Vec<_> = self.lanes.iter().map(|lane| (&lane.endpoint, &lane.contract)).collect();
        lanes.sort_unstable();
        if lanes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(FieldError::new(
                "lease.lanes",
                "name one lane twice",
                "list each endpoint and contract once",
            ));
        }
        check_lease_duration(self.duration)
    }

    /// Messages that are due by then may be claimed at `now`.
    pub fn due_by(&self, now: Timestamp) -> Timestamp {
        self.due_until.map_or(now, |until| until.min(now))
    }
}

pub(super) fn check_lease_duration(duration: Duration) -> Result<(), FieldError> {
    if duration < LEASE_MIN || duration > LEASE_MAX {
        let fix = format!("use {LEASE_MIN:?} to {LEASE_MAX:?}");
        return Err(FieldError::new("lease.duration", format!("is {duration:?}"), fix));
    }
    Ok(())
}

/// A message in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    /// The message.
    pub envelope: Envelope,
    /// The attempt that begins.
    pub attempt: Attempt,
    /// The fence.
    pub lease: LeaseToken,
    /// Since when it was due: with the claim's time, how late it is.
    pub due_at: Timestamp,
}

/// Settlements and a claim, for one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// What was handled.
    pub settlements: Vec<Settlement>,
    /// What may be taken next.
    pub lease: Option<LeaseRequest>,
}

impl Exchange {
    /// Checks the bounds.
    ///
    /// # Errors
    /// Too many settlements, or the claim is out of bounds.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.settlements.len() > SETTLE_BATCH_MAX {
            let fix = format!("settle at most {SETTLE_BATCH_MAX} at once");
            return Err(FieldError::new("settlements", format!("are {}", self.settlements.len()), fix));
        }
        self.lease.as_ref().map_or(Ok(()), LeaseRequest::check)
    }
}

/// What an exchange did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanged {
    /// One for each settlement, in order.
    pub settled: Vec<Settled>,
    /// The claimed messages, in claim order, all under one token.
    pub leased: Vec<Leased>,
    /// Messages that were dead-lettered instead of leased: their workers crashed, or their rows cannot be read.
    pub refused: Vec<MessageId>,
    /// How many due messages were held back because the owner holds a suspect: claim again when it is settled.
    pub held_back: usize,
    /// The store's time of the exchange.
    pub now: Timestamp,
    /// The end of the new lease.
    pub until: Option<Timestamp>,
    /// When the next message of the requested lanes becomes due, if none is due now. It may be another tenant's.
    pub next_due: Option<Timestamp>,
}

impl Exchanged {
    /// An exchange that settled and claimed nothing.
    pub fn nothing(now: Timestamp) -> Self {
        Self {
            settled: Vec::new(),
            leased: Vec::new(),
            refused: Vec::new(),
            held_back: 0,
            now,
            until: None,
            next_due: None,
        }
    }

    /// Whether its claim found nothing due: neither leased, nor refused, nor held back.
    pub fn found_nothing(&self) -> bool {
        self.leased.is_empty() && self.refused.is_empty() && self.held_back == 0
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It took effect; the message now stands here.
    Applied(Status),
    /// The lease no longer holds the message. Nothing was changed; another worker has it or had it.
    LeaseLost,
}

/// An extension of leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendRequest {
    /// Which leases.
    pub leases: Vec<LeaseToken>,
    /// For how long from now, by the store's clock.
    pub duration: Duration,
}

impl ExtendRequest {
    /// Checks the bounds.
    ///
    /// # Errors
    /// A duration out of bounds.
    pub fn check(&self) -> Result<(), FieldError> {
        check_lease_duration(self.duration)
    }
}

/// What became of one lease in an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extended {
    /// It holds.
    Held {
        /// Its new end.
        until: Timestamp,
        /// Its messages that someone asked to cancel.
        cancel_requested: Vec<Seq>,
    },
    /// It is gone: every message in it was settled, or taken back.
    Lost,
}

/// What a recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Leases that were over.
    pub leases: u64,
    /// Messages that are pending again.
    pub returned: u64,
    /// Messages that were to be cancelled and now are.
    pub cancelled: u64,
}
