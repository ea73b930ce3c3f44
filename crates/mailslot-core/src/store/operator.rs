//! What operators see and do.

use crate::contract::Contract;
use crate::id::{Attempt, MessageId};
use crate::message::Envelope;
use crate::name::{EndpointName, SessionKey, TenantName};
use crate::outcome::{ErrorText, Handoff, OutcomeKind, OutcomeRecord, Reason};
use crate::state::{Event, Status};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// A message and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The message.
    pub envelope: Envelope,
    /// Where it stands.
    pub status: Status,
    /// Its present or last attempt.
    pub attempt: Attempt,
    /// Pending: from when it may be leased. Parked: from when it could be, were it the head.
    pub due_at: Option<Timestamp>,
    /// Why its last recorded outcome was what it was.
    pub reason: Option<Reason>,
    /// The error of its last recorded outcome.
    pub error: Option<ErrorText>,
    /// Terminal: since when.
    pub ended_at: Option<Timestamp>,
    /// Leased: until when.
    pub leased_until: Option<Timestamp>,
    /// Leased: by whom, for people.
    pub leased_by: Option<String>,
    /// Leased: someone asked to cancel it.
    pub cancel_requested: bool,
    /// Parked: the head of its session.
    pub waits_behind: Option<MessageId>,
    /// Suspended: what it waits for.
    pub handoff: Option<Handoff>,
}

/// A message with everything that happened to it, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDetail {
    /// The message and where it stands.
    pub record: MessageRecord,
    /// Its recorded outcomes.
    pub history: Vec<OutcomeRecord>,
}

/// How many messages of one kind stand in one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Count {
    /// Where they are handled.
    pub endpoint: EndpointName,
    /// What they are.
    pub contract: Contract,
    /// Where they stand.
    pub status: Status,
    /// How many.
    pub messages: u64,
}

/// What an operator can do to messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Try dead letters again, with fresh attempts.
    Requeue,
    /// Give dead letters up for good and let their sessions go on.
    Skip,
    /// End messages that have not ended. A leased one is asked to end by way of its worker's heartbeat.
    Cancel,
    /// Delete messages with their history and keys. A leased one is left alone.
    Purge,
}

impl Change {
    /// Where a message must stand for the change to apply.
    pub fn applies_to(self, status: Status) -> bool {
        match self {
            Self::Requeue => status.on(Event::Requeue).is_some(),
            Self::Skip => status == Status::DeadLettered,
            Self::Cancel => status.on(Event::Cancel).is_some(),
            Self::Purge => status != Status::Leased,
        }
    }

    /// The states to which it applies.
    pub fn statuses(self) -> impl Iterator<Item = Status> {
        Status::ALL.iter().copied().filter(move |&status| self.applies_to(status))
    }
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changed {
    /// How many messages it applied to. A cancel of a leased message counts when the request is first recorded.
    pub changed: u64,
}

/// How a handoff ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandoffResult {
    /// The work succeeded.
    Completed,
    /// The work failed.
    Failed(ErrorText),
}

/// A session that has a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Where it is handled.
    pub endpoint: EndpointName,
    /// Whose it is.
    pub tenant: Option<TenantName>,
    /// Its key.
    pub key: SessionKey,
    /// The message that is next or in flight, or that blocks it.
    pub head: MessageId,
    /// Where that message stands. The session is blocked if this is `dead_lettered` or `suspended`.
    pub head_status: Status,
    /// How many messages wait behind it.
    pub parked: u64,
}

impl SessionRecord {
    /// Whether someone has to act before the session goes on.
    pub fn is_blocked(&self) -> bool {
        matches!(self.head_status, Status::DeadLettered | Status::Suspended)
    }
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The owner's random part.
    pub owner: Uuid,
    /// The owner's label.
    pub label: String,
    /// The claim.
    pub generation: i64,
    /// Its end.
    pub until: Timestamp,
    /// How many messages it still holds.
    pub messages: u64,
}

/// For how long ended messages are kept, with the time counted from their end. `None`: for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionPolicy {
    /// Completed ones. Their keys deduplicate for as long.
    pub completed: Option<Duration>,
    /// Skipped ones.
    pub skipped: Option<Duration>,
    /// Cancelled ones.
    pub cancelled: Option<Duration>,
    /// Dead letters.
    pub dead_lettered: Option<Duration>,
}

impl Default for RetentionPolicy {
    /// Seven days for what ended well; dead letters stay until an operator acts.
    fn default() -> Self {
        let week = Some(Duration::from_secs(7 * 24 * 3600));
        Self { completed: week, skipped: week, cancelled: week, dead_lettered: None }
    }
}

impl RetentionPolicy {
    /// Keeps everything for ever.
    pub fn keep_all() -> Self {
        Self { completed: None, skipped: None, cancelled: None, dead_lettered: None }
    }

    /// For how long messages that ended in `status` are kept.
    pub fn keep(&self, status: Status) -> Option<Duration> {
        match status {
            Status::Completed => self.completed,
            Status::Skipped => self.skipped,
            Status::Cancelled => self.cancelled,
            Status::DeadLettered => self.dead_lettered,
            Status::Pending | Status::Leased | Status::Parked | Status::Suspended => None,
        }
    }
}

impl RetentionPolicy {
    /// Which ended messages go at `now`: by the outcome that ended them, those that ended before the instant.
    pub fn cutoffs(&self, now: Timestamp) -> impl Iterator<Item = (OutcomeKind, Timestamp)> {
        OutcomeKind::ALL.iter().filter_map(move |kind| {
            // A time that does not fit keeps for ever.
            let keep = SignedDuration::try_from(self.keep(kind.end()?)?).ok()?;
            Some((*kind, now.checked_sub(keep).ok()?))
        })
    }
}

/// The schema of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaInfo {
    /// The kind of store, such as `sqlite`.
    pub backend: &'static str,
    /// The version that is there.
    pub found: u32,
    /// The version that this program wants.
    pub wanted: u32,
}

/// An invariant of the stored data that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which invariant, as a short name.
    pub invariant: &'static str,
    /// What was found, with ids.
    pub found: String,
    /// What usually causes it.
    pub cause: &'static str,
    /// How to mend it.
    pub repair: &'static str,
    /// Whether [`repair`](super::OperatorStore::repair) mends it.
    pub repairable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_ever_has_no_cutoff() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let policy = RetentionPolicy {
            completed: Some(Duration::from_secs(10)),
            skipped: Some(Duration::MAX),
            ..RetentionPolicy::keep_all()
        };
        let before = Timestamp::from_second(999_990).unwrap();
        assert_eq!(policy.cutoffs(now).collect::<Vec<_>>(), [(OutcomeKind::Completed, before)]);
        let kinds: Vec<_> = RetentionPolicy::default().cutoffs(now).map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [OutcomeKind::Completed, OutcomeKind::Skipped, OutcomeKind::Cancelled]);
    }
}
