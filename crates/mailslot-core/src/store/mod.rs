//! What a store must do: small traits in terms of messages and leases, never of rows.
//!
//! [`InboxStore`] is the hot path; [`OperatorStore`] is what people and maintenance need; [`LedgerStore`] is for
//! subscribers of brokers. Guarantees that every store gives, and that the conformance suite of `mailslot-testkit` checks:
//!
//! - Each call is atomic: it takes effect as a whole or, when it fails, not at all. The one exception is a broken
//!   connection, after which the caller cannot know. Every call is safe to repeat, but an append of messages that have
//!   neither a supplied id nor a key: it stores them again.
//! - Time is the store's own; no caller's clock decides about a lease.
//! - A settlement or an extension under a token that does not hold the message changes nothing.

mod append;
mod claim;
mod delegate;
mod filter;
mod invariant;
mod lease;
mod ledger;
mod operator;
mod redrive;
mod select;
mod signal;

pub use append::{AppendGroup, AppendPlan, Appended, LedgerEntry, Planned, SessionRef, plan_append};
pub use claim::{Candidate, Pick, pick_candidates};
pub use filter::{Cursor, Filter, Page, PageOrder, PageRequest};
pub use invariant::Invariant;
pub use lease::{
    Exchange, Exchanged, ExtendRequest, Extended, LaneRequest, LeaseRequest, LeaseToken, Leased, Owner,
    Recovered, Settled,
};
pub use ledger::{Claim, Claimed, Concluded, Conclusion, Known, LedgerStore, Lookup, Question, Stored};
pub use operator::{
    Change, Changed, Count, HandoffResult, LeaseRecord, MessageDetail, MessageRecord, RetentionPolicy,
    SchemaInfo, SessionRecord, Violation,
};
pub use redrive::{
    REDRIVE_RATE_MAX, Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState, RedriveWalk,
    redrive_allowance,
};
pub use select::{Driver, Selection};
pub use signal::{WakeMode, WorkSignal};

use crate::capability::Capabilities;
use crate::error::StoreError;
use crate::id::MessageId;
use crate::name::EndpointName;
use async_trait::async_trait;
use jiff::Timestamp;
use std::time::Duration;

/// The hot path of a store: accept, lease, settle.
#[async_trait]
pub trait InboxStore: Send + Sync + 'static {
    /// What this store can do beyond what the trait demands.
    fn capabilities(&self) -> Capabilities;

    /// The store's present time: the one that leases and due times are measured by.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Stores messages durably, in the order given, in one transaction.
    ///
    /// Each group is all or nothing in itself: one conflict in it keeps the whole group out and says so for each
    /// of its messages. Groups do not affect each other, except that an earlier one is seen by a later one.
    ///
    /// Returns one answer for each message, in order of groups and messages.
    ///
    /// # Errors
    /// More than [`APPEND_BATCH_MAX`](crate::limits::APPEND_BATCH_MAX) messages, or the store failed.
    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError>;

    /// Settles messages and then leases others, in one transaction.
    ///
    /// Leased messages come in order of priority (aged, see [`pick_candidates`]), due time and acceptance. A message
    /// whose attempts are used up is dead-lettered as `crashed` instead of being leased. A message that is suspected of
    /// killing its workers is leased only while its owner holds no other suspect. A stored row that cannot be
    /// read is dead-lettered as `undecodable`, so that it stops no batch.
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError>;

    /// Moves the end of leases and brings back what was asked to be cancelled.
    ///
    /// A lease that nobody recovered yet can still be extended after its end: its messages were given to no one else.
    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError>;

    /// Takes back the messages of at most `limit` leases whose time is over.
    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError>;

    /// Is notified when messages may have become leasable.
    fn work_signal(&self) -> &WorkSignal;
}

/// A store that appends in a transaction of the caller's, on a connection of type `C`.
#[async_trait]
pub trait AppendIn<C: Send + ?Sized>: InboxStore {
    /// As [`InboxStore::append`], but durable only when the caller commits, and gone when the caller rolls back.
    async fn append_in(
        &self,
        connection: &mut C,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError>;
}

/// What operators and maintenance need from a store.
#[async_trait]
pub trait OperatorStore: Send + Sync + 'static {
    /// One page of messages, in acceptance order or against it. Pages are stable while messages come and go.
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError>;

    /// Every message of this id, oldest first, with its history: more than one only where tenants chose the same id.
    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError>;

    /// How many messages stand where, from counters.
    async fn counts(&self) -> Result<Vec<Count>, StoreError>;

    /// For how long the message of an endpoint waits that has been due longest. `None`: none is due.
    async fn oldest_due(&self, endpoint: &EndpointName) -> Result<Option<Duration>, StoreError>;

    /// Applies a change to at most `limit` messages that match and to which it can apply, oldest first.
    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError>;

    /// Settles a suspended message from outside. `false`: no suspended message has this id.
    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError>;

    /// Keeps the settlement of a handoff whose message is not suspended yet, for so long; a later one for the same id
    /// replaces it. [`apply_kept_handoffs`](Self::apply_kept_handoffs) settles it when the message is there. `false`: too many
    /// are kept.
    async fn keep_handoff(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError>;

    /// Settles at most `limit` suspended messages whose settlement was kept, and forgets what was kept for long enough.
    /// Returns how many were settled.
    async fn apply_kept_handoffs(&self, limit: usize) -> Result<u64, StoreError>;

    /// Sessions that hold messages back, by key, with the one that blocks them.
    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError>;

    /// Leases, oldest end first.
    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError>;

    /// Deletes at most `limit` messages of an endpoint (or of all) that ended longer ago than the policy keeps them,
    /// with their history and ledger records. Returns how many: more than `limit` only where a store drops a whole partition
    /// of them at once.
    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError>;

    /// Starts a redrive.
    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError>;

    /// Every redrive that is still known, newest first.
    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError>;

    /// Pauses, resumes or cancels a redrive. `None`: there is no such redrive.
    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError>;

    /// Advances every running redrive by as many messages as its rate allows by now. Returns those that moved.
    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError>;

    /// The schema that is there and the one that this version wants.
    async fn schema(&self) -> Result<SchemaInfo, StoreError>;

    /// Checks the invariants of the stored data. Empty: all hold.
    async fn check(&self) -> Result<Vec<Violation>, StoreError>;

    /// Repairs what [`check`](OperatorStore::check) calls repairable. Returns what was repaired.
    async fn repair(&self) -> Result<Vec<Violation>, StoreError>;
}
