//! The vocabulary of the cases: what a test does to a store, in few words.

use super::claim::Claim;
pub(super) use super::claim::claim;
use super::fixture::{Fixture, TestStore};
use crate::message::{MessageBuilder, message, valid};
use jiff::{SignedDuration, Timestamp};
use mailslot_core::store::{
    AppendGroup, Appended, Change, Exchange, Exchanged, ExtendRequest, Extended, Filter, Leased,
    MessageDetail, MessageRecord, PageRequest, Recovered, Settled,
};
use mailslot_core::{
    Clock as _, Disposition, EndpointName, ErrorText, Handoff, LeaseToken, MessageId, NewMessage,
    OutcomeRecord, Owner, Reason, Receipt, Settlement, Status, StoreError, TenantName,
};
use std::time::Duration;

/// How long the leases of the cases last.
pub const LEASE: Duration = Duration::from_secs(60);

/// How many attempts the claims of the cases allow.
pub const ATTEMPTS: u32 = 5;

/// More than any case changes at once.
pub(super) const MANY: usize = 1_000;

/// A message of the contract that most cases use.
pub(super) fn order() -> MessageBuilder {
    message("order")
}

pub(super) fn owner(label: &str) -> Owner {
    valid(Owner::new(label))
}

/// An endpoint's name.
pub(super) fn endpoint(name: &str) -> EndpointName {
    valid(EndpointName::new(name))
}

/// A tenant's name.
pub(super) fn tenant(name: &str) -> TenantName {
    valid(TenantName::new(name))
}

/// Unwraps what the store did.
pub(super) fn done<T>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| panic!("the store failed in {error} ({:?})", error.kind()))
}

/// The ids of claimed messages, in claim order.
pub fn ids(leased: &[Leased]) -> Vec<MessageId> {
    leased.iter().map(|leased| leased.envelope.id).collect()
}

/// Every record that matches, oldest first, page by page.
///
/// # Errors
/// The store failed.
pub async fn every_record(store: &dyn TestStore, filter: &Filter) -> Result<Vec<MessageRecord>, StoreError> {
    let mut page = PageRequest { size: MANY, ..PageRequest::default() };
    let mut records = Vec::new();
    loop {
        let found = store.query(filter, &page).await?;
        records.extend(found.items);
        if found.next.is_none() {
            return Ok(records);
        }
        page.after = found.next;
    }
}

// Accepting.
impl Fixture {
    /// Appends groups and gives every answer.
    pub async fn append(&self, groups: Vec<Vec<MessageBuilder>>) -> Vec<Vec<Appended>> {
        let group = |messages: Vec<MessageBuilder>| AppendGroup {
            messages: messages.into_iter().map(NewMessage::from).collect(),
        };
        done(self.store.append(groups.into_iter().map(group).collect()).await)
    }

    /// Appends one group.
    pub async fn append_group(&self, messages: impl IntoIterator<Item = MessageBuilder>) -> Vec<Appended> {
        self.append(vec![messages.into_iter().collect()]).await.remove(0)
    }

    /// Appends one message and gives the answer.
    pub async fn offer(&self, message: MessageBuilder) -> Appended {
        self.append_group([message]).await.remove(0)
    }

    /// Appends one message that must get a receipt.
    pub async fn accept(&self, message: MessageBuilder) -> Receipt {
        receipt(self.offer(message).await)
    }

    /// Appends messages in one group; each must get a receipt. Gives their ids in order.
    pub async fn accept_all(&self, messages: impl IntoIterator<Item = MessageBuilder>) -> Vec<MessageId> {
        self.append_group(messages).await.into_iter().map(|answer| receipt(answer).id).collect()
    }
}

/// The receipt of a message that must be stored.
pub(super) fn receipt(answer: Appended) -> Receipt {
    match answer {
        Appended::Stored(receipt) => receipt,
        other => panic!("expected a receipt, got {other:?}"),
    }
}

// Leasing and settling.
impl Fixture {
    /// An exchange.
    pub async fn exchange(&self, settlements: Vec<Settlement>, lease: Option<Claim>) -> Exchanged {
        let lease = lease.map(|claim| claim.request(&self.owner));
        done(self.store.exchange(Exchange { settlements, lease }).await)
    }

    /// A claim.
    pub async fn claim(&self, claim: Claim) -> Exchanged {
        self.exchange(Vec::new(), Some(claim)).await
    }

    /// Leases up to `limit` orders.
    pub async fn lease(&self, limit: usize) -> Vec<Leased> {
        self.claim(claim("order").limit(limit)).await.leased
    }

    /// Leases the first order that is due.
    ///
    /// # Panics
    /// None is.
    pub async fn lease_one(&self) -> Leased {
        self.lease(1).await.pop().expect("an order is due")
    }

    /// Settles one message.
    pub async fn settle(&self, leased: &Leased, disposition: Disposition) -> Settled {
        self.exchange(vec![settlement(leased, disposition)], None).await.settled[0]
    }

    /// The handler succeeded.
    pub async fn complete(&self, leased: &Leased) -> Settled {
        self.settle(leased, Disposition::Complete).await
    }

    /// The handler failed and the message is due again in so many seconds.
    pub async fn retry(&self, leased: &Leased, seconds: u64) -> Settled {
        self.settle(leased, retry_in(seconds)).await
    }

    /// The handler gave up.
    pub async fn dead_letter(&self, leased: &Leased) -> Settled {
        self.settle(leased, Disposition::DeadLetter { reason: Reason::Permanent }).await
    }

    /// The handler started work elsewhere.
    pub async fn suspend(&self, leased: &Leased) -> Settled {
        self.settle(leased, Disposition::Suspend(handoff())).await
    }

    /// The worker gives the message back.
    pub async fn release(&self, leased: &Leased) -> Settled {
        self.settle(leased, Disposition::Release).await
    }

    /// Extends leases by [`LEASE`].
    pub async fn extend(&self, leases: impl IntoIterator<Item = LeaseToken>) -> Vec<Extended> {
        let leases = leases.into_iter().collect();
        done(self.store.extend(ExtendRequest { leases, duration: LEASE }).await)
    }

    /// Takes back every lease that is over.
    pub async fn recover(&self) -> Recovered {
        done(self.store.recover(MANY).await)
    }
}

/// A settlement of what was leased.
pub(super) fn settlement(leased: &Leased, disposition: Disposition) -> Settlement {
    Settlement {
        lease: leased.lease,
        seq: leased.envelope.seq,
        attempt: leased.attempt,
        disposition,
        error: None,
    }
}

pub(super) fn settlement_with(leased: &Leased, disposition: Disposition, error: &str) -> Settlement {
    Settlement { error: Some(ErrorText::new(error)), ..settlement(leased, disposition) }
}

pub(super) fn retry_in(seconds: u64) -> Disposition {
    Disposition::Retry { after: Duration::from_secs(seconds), reason: Reason::Failed }
}

pub(super) fn handoff() -> Handoff {
    valid(Handoff::new("waits for the bank"))
}

// Looking.
impl Fixture {
    /// The one message of this id, with its history.
    ///
    /// # Panics
    /// There is none, or more than one.
    pub async fn detail(&self, id: MessageId) -> MessageDetail {
        let mut found = done(self.store.get(id).await);
        assert_eq!(found.len(), 1, "messages of id {id}");
        found.remove(0)
    }

    /// The one message of this id.
    pub async fn record(&self, id: MessageId) -> MessageRecord {
        self.detail(id).await.record
    }

    /// The recorded outcomes of the one message of this id.
    pub async fn history(&self, id: MessageId) -> Vec<OutcomeRecord> {
        self.detail(id).await.history
    }

    /// Where the one message of this id stands.
    pub async fn status(&self, id: MessageId) -> Status {
        self.record(id).await.status
    }

    /// Where each of these messages stands.
    pub async fn statuses<const N: usize>(&self, ids: [MessageId; N]) -> [Status; N] {
        let mut statuses = [Status::Pending; N];
        for (status, id) in statuses.iter_mut().zip(ids) {
            *status = self.status(id).await;
        }
        statuses
    }

    /// Whether no message has this id.
    pub async fn is_gone(&self, id: MessageId) -> bool {
        done(self.store.get(id).await).is_empty()
    }

    /// The ids of every message that matches, oldest first.
    pub async fn find(&self, filter: Filter) -> Vec<MessageId> {
        let records = done(every_record(&*self.store, &filter).await);
        records.iter().map(|record| record.envelope.id).collect()
    }
}

// Operating.
impl Fixture {
    /// Changes these messages. Gives how many the change applied to.
    pub async fn change(&self, change: Change, ids: impl IntoIterator<Item = MessageId>) -> u64 {
        done(self.store.change(change, &Filter::of_ids(ids), MANY).await).changed
    }

    /// Moves the clock; a negative number moves it back.
    pub fn advance(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }

    /// The time on the clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time on the clock, and so many seconds.
    ///
    /// # Panics
    /// That leaves the calendar.
    pub fn after(&self, seconds: i64) -> Timestamp {
        self.now().saturating_add(SignedDuration::from_secs(seconds)).expect("tests stay within the calendar")
    }
}
