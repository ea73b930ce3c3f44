//! The operator API: what people and tools ask of an inbox.

use crate::store::Store;
use mailslot_core::limits::{CHANGE_BATCH_MAX, PAGE_MAX};
use mailslot_core::store::{
    Change, Count, Filter, HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page, PageRequest,
    Redrive, RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord, Violation,
};
use mailslot_core::{Contract, ErrorText, FieldError, MessageId, Status, StoreError, TenantName, WakeMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Queries and changes for people. Clones share the store.
#[derive(Clone)]
pub struct Operator {
    store: Arc<dyn Store>,
    known: Arc<dyn Fn(&Contract) -> bool + Send + Sync>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({})", self.store.capabilities().backend)
    }
}

/// How many messages a change was asked for and how many it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// How many ids were named, each counted once; `None` if the messages were selected otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    /// How many were changed. The rest did not exist or stood elsewhere.
    pub changed: u64,
}

/// What became of the settlement of a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffSettled {
    /// The message has ended.
    Applied,
    /// No message of this id is suspended yet: it is kept for one.
    Kept,
}

impl Operator {
    /// The operator API of a store, without an inbox.
    pub fn new(store: impl Store) -> Self {
        Self { store: Arc::new(store), known: Arc::new(|_| true) }
    }

    pub(crate) fn of(store: Arc<dyn Store>, known: Arc<dyn Fn(&Contract) -> bool + Send + Sync>) -> Self {
        Self { store, known }
    }

    /// How the store notices the accepts of other processes, if it says so. Waits at most `patience` for a listener that
    /// is still connecting.
    pub async fn wake_mode(&self, patience: Duration) -> Option<WakeMode> {
        let signal = self.store.work_signal();
        let connected = async {
            loop {
                let changed = signal.listen();
                if signal.mode() != Some(WakeMode::Connecting) {
                    return;
                }
                changed.await;
            }
        };
        // One that is not connected by then answers so.
        tokio::time::timeout(patience, connected).await.ok();
        signal.mode()
    }

    /// One page of messages.
    pub async fn query(
        &self,
        filter: &Filter,
        page: &PageRequest,
    ) -> Result<Page<MessageRecord>, OperateError> {
        page.check()?;
        Ok(self.store.query(filter, page).await?)
    }

    /// A message with its history. Name the tenant if several chose the same id.
    ///
    /// # Errors
    /// Several messages have this id and no tenant is named.
    pub async fn get(
        &self,
        id: MessageId,
        tenant: Option<&TenantName>,
    ) -> Result<Option<MessageDetail>, OperateError> {
        let mut found = self.store.get(id).await?;
        if let Some(tenant) = tenant {
            found.retain(|detail| detail.record.envelope.tenant.as_ref() == Some(tenant));
        }
        if found.len() > 1 {
            let fix = "several tenants supplied it: name one of them";
            return Err(FieldError::new("id", format!("belongs to {} messages", found.len()), fix).into());
        }
        Ok(found.pop())
    }

    /// How many messages stand where.
    pub async fn counts(&self) -> Result<Vec<Count>, OperateError> {
        Ok(self.store.counts().await?)
    }

    /// Pending messages of contracts that this process does not know: they wait for one that does.
    pub async fn unknown_contracts(&self) -> Result<Vec<Count>, OperateError> {
        let mut counts = self.counts().await?;
        counts.retain(|count| count.status == Status::Pending && !(self.known)(&count.contract));
        Ok(counts)
    }

    /// Tries dead letters again, with fresh attempts, as fast as the store can. See [`redrive`](Self::redrive) for a
    /// paced way.
    pub async fn requeue(&self, filter: &Filter) -> Result<Changes, OperateError> {
        self.change(Change::Requeue, filter, |_| ()).await
    }

    /// Tries one dead letter again, as it was seen: in this generation. Somebody who was faster is not overridden.
    ///
    /// # Errors
    /// It is not there, no dead letter any more, or in another generation by now.
    pub async fn resubmit(&self, id: MessageId, generation: u32) -> Result<(), OperateError> {
        let seen = Filter { generation: Some(generation), ..Filter::of_ids([id]) };
        match self.requeue(&seen).await?.changed {
            0 => Err(OperateError::Changed { id, generation }),
            _ => Ok(()),
        }
    }

    /// Gives dead letters up for good and lets their sessions go on.
    pub async fn skip(&self, filter: &Filter) -> Result<Changes, OperateError> {
        self.change(Change::Skip, filter, |_| ()).await
    }

    /// Ends messages that have not ended. A running one is told by its worker's next heartbeat.
    pub async fn cancel(&self, filter: &Filter) -> Result<Changes, OperateError> {
        self.change(Change::Cancel, filter, |_| ()).await
    }

    /// Deletes messages with their history and keys; leased ones stay. A filter that selects everything needs
    /// `confirm`.
    ///
    /// # Errors
    /// An unrestricted filter without `confirm`.
    pub async fn purge(&self, filter: &Filter, confirm: bool) -> Result<Changes, OperateError> {
        if filter.is_unrestricted() && !confirm {
            let fix = "narrow it, or confirm that every message is to be deleted";
            return Err(FieldError::new("filter", "selects every message", fix).into());
        }
        self.change(Change::Purge, filter, |_| ()).await
    }

    /// Applies a change in short transactions, oldest messages first, and tells `progress` the count after each.
    pub async fn change(
        &self,
        change: Change,
        filter: &Filter,
        mut progress: impl FnMut(u64),
    ) -> Result<Changes, OperateError> {
        let requested = filter.ids.as_ref().map(|ids| ids.iter().collect::<BTreeSet<_>>().len() as u64);
        let mut changed = 0;
        loop {
            let step = self.store.change(change, filter, CHANGE_BATCH_MAX).await?.changed;
            changed += step;
            progress(changed);
            if step < CHANGE_BATCH_MAX as u64 {
                return Ok(Changes { requested, changed });
            }
        }
    }

    /// Ends a handoff whose work succeeded. `false`: no suspended message has this id.
    pub async fn complete_handoff(&self, id: MessageId) -> Result<bool, OperateError> {
        Ok(self.store.settle_handoff(id, HandoffResult::Completed).await?)
    }

    /// Ends a handoff whose work failed: the message is dead-lettered. `false`: no suspended message has this id.
    pub async fn fail_handoff(&self, id: MessageId, error: impl AsRef<str>) -> Result<bool, OperateError> {
        Ok(self.store.settle_handoff(id, HandoffResult::Failed(ErrorText::new(error))).await?)
    }

    /// Settles a handoff, or keeps its settlement for so long if no message of this id is suspended yet: for systems that may be
    /// done before the handler has returned. Every inbox applies what is kept within a moment of the suspension. The id of a
    /// message that comes from a broker follows from its delivery
    /// ([`DeliveryKey::stored_id`](mailslot_core::DeliveryKey::stored_id)).
    ///
    /// # Errors
    /// Too many are kept already: whoever settles does not mean this inbox.
    pub async fn settle_handoff_early(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<HandoffSettled, OperateError> {
        if self.store.settle_handoff(id, result.clone()).await? {
            return Ok(HandoffSettled::Applied);
        }
        if self.store.keep_handoff(id, result, keep_for).await? {
            return Ok(HandoffSettled::Kept);
        }
        let fix = "see that the ids are those of messages that are handed off here";
        Err(FieldError::new("handoff", "has too many settlements that no message waits for", fix).into())
    }

    /// Suspended messages whose work elsewhere was expected to be done by now, in acceptance order, at most `limit`.
    pub async fn overdue_handoffs(&self, limit: usize) -> Result<Vec<MessageRecord>, OperateError> {
        let now = self.store.now().await?;
        let suspended = Filter { statuses: Some(vec![Status::Suspended]), ..Filter::default() };
        let is_overdue = |record: &MessageRecord| {
            let expected = record.handoff.as_ref().and_then(|handoff| handoff.expected_by);
            expected.is_some_and(|expected| expected <= now)
        };
        let mut page = PageRequest { size: PAGE_MAX, ..PageRequest::default() };
        let mut overdue = Vec::new();
        loop {
            let found = self.store.query(&suspended, &page).await?;
            overdue.extend(found.items.into_iter().filter(is_overdue));
            overdue.truncate(limit);
            page.after = found.next;
            if overdue.len() == limit || page.after.is_none() {
                return Ok(overdue);
            }
        }
    }

    /// Sessions that have a head, or only those that wait for someone to act.
    pub async fn sessions(
        &self,
        blocked_only: bool,
        limit: usize,
    ) -> Result<Vec<SessionRecord>, OperateError> {
        Ok(self.store.sessions(blocked_only, limit).await?)
    }

    /// Leases, oldest end first.
    pub async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, OperateError> {
        Ok(self.store.leases(limit).await?)
    }

    /// Deletes what ended longer ago than the policy keeps it, in short transactions.
    pub async fn retain(
        &self,
        policy: &RetentionPolicy,
        mut progress: impl FnMut(u64),
    ) -> Result<u64, OperateError> {
        let mut deleted = 0;
        loop {
            let step = self.store.retain(None, policy, CHANGE_BATCH_MAX).await?;
            deleted += step;
            progress(deleted);
            if step < CHANGE_BATCH_MAX as u64 {
                return Ok(deleted);
            }
        }
    }

    /// Starts to requeue dead letters at a rate. Workers of any process advance it; it survives restarts.
    pub async fn redrive(&self, spec: RedriveSpec) -> Result<Redrive, OperateError> {
        spec.check()?;
        Ok(self.store.create_redrive(spec).await?)
    }

    /// Every redrive that is still known, newest first.
    pub async fn redrives(&self) -> Result<Vec<Redrive>, OperateError> {
        Ok(self.store.redrives().await?)
    }

    /// Pauses, resumes or cancels a redrive.
    pub async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, OperateError> {
        Ok(self.store.act_on_redrive(id, action).await?)
    }

    /// Advances redrives by one step: for a program that has no worker running.
    pub async fn step_redrives(&self) -> Result<Vec<Redrive>, OperateError> {
        Ok(self.store.step_redrives().await?)
    }

    /// The store's schema.
    pub async fn schema(&self) -> Result<SchemaInfo, OperateError> {
        Ok(self.store.schema().await?)
    }

    /// Checks the invariants of the stored data.
    pub async fn check(&self) -> Result<Vec<Violation>, OperateError> {
        Ok(self.store.check().await?)
    }

    /// Repairs what [`check`](Self::check) calls repairable.
    pub async fn repair(&self) -> Result<Vec<Violation>, OperateError> {
        Ok(self.store.repair().await?)
    }
}

/// An operator's request was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperateError {
    /// The request is out of bounds.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The message is not as it was seen.
    #[error(
        "{id} is no dead letter of generation {generation} any more: look at it again before you change it"
    )]
    Changed {
        /// The message.
        id: MessageId,
        /// What was seen.
        generation: u32,
    },
}
