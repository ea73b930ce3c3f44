//! Brings a message into a state by the shortest way.

use super::claim::{Claim, claim};
use super::fixture::Fixture;
use crate::message::MessageBuilder;
use mailslot_core::store::{Change, Leased, Settled};
use mailslot_core::{Disposition, MessageId, Reason, Status};

/// A message that stands where a case wants it.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The message.
    pub id: MessageId,
    /// The lease that it had or has, unless its state needs none.
    pub lease: Option<Leased>,
}

impl Fixture {
    /// Accepts `message` and brings it into `status`. Nothing else of its contract may be due.
    ///
    /// For a parked one, another message of its session (by default a new one) is accepted before it.
    ///
    /// # Panics
    /// The store does not let it.
    pub async fn place(&self, message: MessageBuilder, status: Status) -> Placed {
        let message = if status == Status::Parked { self.behind_a_head(message).await } else { message };
        let claim = claim_of(&message);
        let id = self.accept(message).await.id;
        let leased = !matches!(status, Status::Pending | Status::Parked | Status::Cancelled);
        let lease = if leased { Some(self.take(id, claim).await) } else { None };
        if let (Some(lease), Some(verdict)) = (&lease, verdict(status)) {
            assert_eq!(self.settle(lease, verdict).await, Settled::Applied(status));
        }
        if status == Status::Cancelled {
            assert_eq!(self.change(Change::Cancel, [id]).await, 1, "a pending message can be cancelled");
        }
        assert_eq!(self.status(id).await, status);
        Placed { id, lease }
    }

    async fn behind_a_head(&self, message: MessageBuilder) -> MessageBuilder {
        let named = message.metadata().session.is_some();
        let message = if named { message } else { message.session(&MessageId::generate().to_string()) };
        // Due later, so that it never comes in the way of a claim.
        let mut head = crate::message::message("head").due_in(30 * 24 * 3600);
        if let Some(session) = &message.metadata().session {
            head = head.session(session.as_str());
        }
        if let Some(tenant) = &message.metadata().tenant {
            head = head.tenant(tenant.as_str());
        }
        self.accept(head.endpoint(message.metadata().endpoint.as_str())).await;
        message
    }

    async fn take(&self, id: MessageId, claim: Claim) -> Leased {
        let leased = self.claim(claim.limit(1)).await.leased.pop().expect("the message is due");
        assert_eq!(leased.envelope.id, id, "nothing else of its contract is due");
        leased
    }
}

/// The lane of a message.
pub(super) fn claim_of(message: &MessageBuilder) -> Claim {
    claim(&message.contract().to_string()).at(message.metadata().endpoint.as_str())
}

/// The verdict that leads from leased to `status`, if one does.
fn verdict(status: Status) -> Option<Disposition> {
    match status {
        Status::Pending | Status::Parked | Status::Cancelled | Status::Leased => None,
        Status::Suspended => Some(Disposition::Suspend(super::verbs::handoff())),
        Status::Completed => Some(Disposition::Complete),
        Status::Skipped => Some(Disposition::Skip { reason: Reason::Vetoed }),
        Status::DeadLettered => Some(Disposition::DeadLetter { reason: Reason::Permanent }),
    }
}
