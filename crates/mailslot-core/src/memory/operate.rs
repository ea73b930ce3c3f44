//! What operators ask of the memory store.

use super::table::{Lane, Place, Row, Table};
use crate::id::{MessageId, Seq};
use crate::limits::HANDOFFS_KEPT_MAX;
use crate::name::EndpointName;
use crate::outcome::{OutcomeKind, Reason};
use crate::state::Status;
use crate::store::{
    Change, Changed, Count, Cursor, Filter, HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page,
    PageOrder, PageRequest, RetentionPolicy, SessionRecord, SessionRef,
};
use jiff::{SignedDuration, Timestamp};
use std::ops::Bound;

impl Table {
    pub(super) fn record(&self, row: &Row) -> MessageRecord {
        let last = row.history.last();
        let lease = match &row.place {
            Place::Leased { generation } => self.leases.get(generation),
            _ => None,
        };
        let session = row.session_id().and_then(|id| self.sessions.get(&id));
        let waits_behind = matches!(row.place, Place::Parked { .. }).then_some(session).flatten();
        MessageRecord {
            envelope: row.envelope.clone(),
            status: row.place.status(),
            attempt: row.attempt,
            due_at: match row.place {
                Place::Ready { due_at } | Place::Parked { due_at } => Some(due_at),
                _ => None,
            },
            reason: last.and_then(|outcome| outcome.reason),
            error: last.and_then(|outcome| outcome.error.clone()),
            ended_at: match row.place {
                Place::Ended { at, .. } => Some(at),
                _ => None,
            },
            leased_until: lease.map(|lease| lease.until),
            leased_by: lease.map(|lease| lease.owner.label().to_owned()),
            cancel_requested: row.cancel_requested,
            waits_behind: waits_behind.map(|session| self.row(session.head).envelope.id),
            handoff: match &row.place {
                Place::Suspended(handoff) => Some(handoff.clone()),
                _ => None,
            },
        }
    }

    pub(super) fn query(&self, filter: &Filter, page: &PageRequest) -> Page<MessageRecord> {
        let after = page.after.map(|Cursor(seq)| seq);
        let rows: Box<dyn Iterator<Item = &Row>> = match page.order {
            PageOrder::OldestFirst => {
                let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
                Box::new(self.rows.range((behind, Bound::Unbounded)).map(|(_, row)| row))
            }
            PageOrder::NewestFirst => {
                Box::new(self.rows.range(..after.unwrap_or(Seq(i64::MAX))).rev().map(|(_, row)| row))
            }
        };
        let mut matching = rows.map(|row| self.record(row)).filter(|record| filter.matches(record));
        let items: Vec<_> = matching.by_ref().take(page.size).collect();
        let more = matching.next().is_some();
        let next = items.last().filter(|_| more).map(|record| Cursor(record.envelope.seq));
        Page { items, next }
    }

    pub(super) fn get(&self, id: MessageId) -> Vec<MessageDetail> {
        let seqs = self.ids.get(&id).into_iter().flatten();
        let rows = seqs.map(|&seq| self.row(seq));
        rows.map(|row| MessageDetail { record: self.record(row), history: row.history.clone() }).collect()
    }

    pub(super) fn counts(&self) -> Vec<Count> {
        let mut counts = Vec::new();
        for Lane { key: (endpoint, contract), tally, .. } in &self.lanes {
            let found = tally.iter().filter(|(_, messages)| **messages > 0);
            counts.extend(found.map(|(&status, &messages)| Count {
                endpoint: endpoint.clone(),
                contract: contract.clone(),
                status,
                messages,
            }));
        }
        counts.sort_unstable();
        counts
    }

    pub(super) fn oldest_due(&self, endpoint: &EndpointName) -> Option<Timestamp> {
        let lanes = self.lanes.iter().filter(|lane| lane.key.0 == *endpoint);
        lanes.flat_map(|lane| &lane.ready).filter_map(|ready| ready.first()).map(|&(due_at, _)| due_at).min()
    }

    pub(super) fn change(
        &mut self,
        change: Change,
        filter: &Filter,
        limit: usize,
        now: Timestamp,
    ) -> Changed {
        let applies = |row: &&Row| change.applies_to(row.place.status()) && !row.cancel_requested;
        let matching = self.rows.values().filter(applies).filter(|row| filter.matches(&self.record(row)));
        let seqs: Vec<_> = matching.take(limit).map(|row| row.envelope.seq).collect();
        for &seq in &seqs {
            match change {
                Change::Requeue => self.requeue(seq, now),
                Change::Skip => self.skip(seq, now),
                Change::Cancel => self.cancel(seq, now),
                Change::Purge => self.delete(seq),
            }
        }
        Changed { changed: seqs.len() as u64 }
    }

    pub(super) fn requeue(&mut self, seq: Seq, now: Timestamp) {
        let row = self.row_mut(seq);
        row.record(OutcomeKind::Requeued, Some(Reason::Operator), None, now);
        row.attempt = row.attempt.requeued();
        self.place(seq, Place::Ready { due_at: now });
    }

    fn skip(&mut self, seq: Seq, now: Timestamp) {
        let row = self.row_mut(seq);
        row.attempt = row.attempt.requeued();
        self.end(seq, Status::Skipped, Some(Reason::Operator), None, now);
    }

    fn cancel(&mut self, seq: Seq, now: Timestamp) {
        if matches!(self.row(seq).place, Place::Leased { .. }) {
            self.row_mut(seq).cancel_requested = true;
        } else {
            self.end(seq, Status::Cancelled, Some(Reason::Operator), None, now);
        }
    }

    fn delete(&mut self, seq: Seq) {
        let parked = matches!(self.row(seq).place, Place::Parked { .. });
        self.leave_session(seq, parked);
        self.unindex(seq);
        let row = self.rows.remove(&seq).expect("it was just there");
        self.deliveries.message_goes(seq, &row.place);
        for key in row.ledger_keys() {
            if self.ledger.get(&key).is_some_and(|(holder, _)| *holder == seq) {
                self.ledger.remove(&key);
            }
        }
        if let Some(seqs) = self.ids.get_mut(&row.envelope.id) {
            seqs.retain(|&other| other != seq);
            if seqs.is_empty() {
                self.ids.remove(&row.envelope.id);
            }
        }
    }

    pub(super) fn settle_handoff(&mut self, id: MessageId, result: HandoffResult, now: Timestamp) -> bool {
        let seqs = self.ids.get(&id).into_iter().flatten();
        let suspended = seqs.copied().find(|&seq| matches!(self.row(seq).place, Place::Suspended(_)));
        let Some(seq) = suspended else { return false };
        match result {
            HandoffResult::Completed => self.end(seq, Status::Completed, None, None, now),
            HandoffResult::Failed(error) => {
                self.end(seq, Status::DeadLettered, Some(Reason::HandoffFailed), Some(error), now);
            }
        }
        true
    }

    pub(super) fn keep_handoff(&mut self, id: MessageId, result: HandoffResult, until: Timestamp) -> bool {
        let has_room = self.kept_handoffs.len() < HANDOFFS_KEPT_MAX;
        if has_room {
            self.kept_handoffs.insert(id, (result, until));
        }
        has_room
    }

    pub(super) fn apply_kept_handoffs(&mut self, limit: usize, now: Timestamp) -> u64 {
        let kept: Vec<_> = self.kept_handoffs.iter().map(|(id, (result, _))| (*id, result.clone())).collect();
        let mut settled = 0;
        for (id, result) in kept {
            if settled < limit as u64 && self.settle_handoff(id, result, now) {
                self.kept_handoffs.remove(&id);
                settled += 1;
            }
        }
        self.kept_handoffs.retain(|_, (_, until)| *until > now);
        settled
    }

    pub(super) fn sessions(&self, blocked_only: bool, limit: usize) -> Vec<SessionRecord> {
        let records = self.sessions.iter().map(|(SessionRef { endpoint, tenant, key }, session)| {
            let head = self.row(session.head);
            SessionRecord {
                endpoint: endpoint.clone(),
                tenant: tenant.clone(),
                key: key.clone(),
                head: head.envelope.id,
                head_status: head.place.status(),
                parked: session.parked.len() as u64,
            }
        });
        records.filter(|record| !blocked_only || record.is_blocked()).take(limit).collect()
    }

    pub(super) fn leases(&self, limit: usize) -> Vec<LeaseRecord> {
        let mut leases: Vec<_> = self
            .leases
            .iter()
            .map(|(&generation, lease)| LeaseRecord {
                owner: lease.owner.session(),
                label: lease.owner.label().to_owned(),
                generation,
                until: lease.until,
                messages: lease.members.len() as u64,
            })
            .collect();
        leases.sort_by_key(|lease| (lease.until, lease.generation));
        leases.truncate(limit);
        leases
    }

    pub(super) fn retain(
        &mut self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
        now: Timestamp,
    ) -> u64 {
        let expired = |row: &&Row| {
            let Place::Ended { status, at } = row.place else { return false };
            let keep = policy.keep(status).and_then(|keep| SignedDuration::try_from(keep).ok());
            endpoint.is_none_or(|endpoint| *endpoint == row.envelope.endpoint)
                && keep.is_some_and(|keep| now.duration_since(at) > keep)
        };
        let seqs: Vec<_> =
            self.rows.values().filter(expired).take(limit).map(|row| row.envelope.seq).collect();
        for &seq in &seqs {
            self.delete(seq);
        }
        seqs.len() as u64
    }
}
