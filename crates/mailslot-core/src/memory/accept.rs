//! Accepting into the memory store.

use super::table::{Lane, Place, Row, Session, Table};
use crate::id::{Attempt, Seq};
use crate::limits::PARKED_PER_SESSION_MAX;
use crate::message::{Envelope, LedgerKey, NewMessage};
use crate::metadata::{Idempotency, KeyPolicy};
use crate::receipt::{AcceptOutcome, Receipt};
use crate::state::Status;
use crate::store::{AppendGroup, Appended, LedgerEntry, Planned, SessionRef, plan_append};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl Table {
    pub(super) fn append(&mut self, groups: Vec<AppendGroup>, now: Timestamp) -> Vec<Vec<Appended>> {
        let keys = groups.iter().flat_map(|group| &group.messages).flat_map(NewMessage::ledger_keys);
        let known: HashMap<_, _> = keys.filter_map(|key| Some((key, self.ledger_entry(key)?))).collect();
        let plan = plan_append(&groups, &known, now, |message| self.room(message));
        for (group, planned) in groups.into_iter().zip(&plan.groups) {
            for (message, planned) in group.messages.into_iter().zip(planned) {
                if let Planned::Insert(_) = planned {
                    self.insert(message, now);
                }
            }
        }
        plan.into_answers()
    }

    fn ledger_entry(&self, key: LedgerKey) -> Option<LedgerEntry> {
        let (seq, fingerprint) = *self.ledger.get(&key)?;
        let row = self.rows.get(&seq)?;
        let envelope = &row.envelope;
        let receipt = Receipt {
            id: envelope.id,
            contract: envelope.contract.clone(),
            endpoint: envelope.endpoint.clone(),
            accepted_at: envelope.accepted_at,
            tenant: envelope.tenant.clone(),
            trace: envelope.trace.clone(),
            outcome: AcceptOutcome::AlreadyAccepted { status: row.place.status() },
        };
        Some(LedgerEntry { fingerprint, receipt })
    }

    /// How many messages may still join this message's session; the one that becomes its head counts too.
    pub(super) fn room(&self, message: &NewMessage) -> u64 {
        let Some(session) = SessionRef::of(message) else { return u64::MAX };
        let parked = self.sessions.get(&session).map(|session| session.parked.len() as u64);
        parked.map_or(PARKED_PER_SESSION_MAX + 1, |parked| PARKED_PER_SESSION_MAX.saturating_sub(parked))
    }

    pub(super) fn insert(&mut self, message: NewMessage, now: Timestamp) -> Seq {
        self.last_seq += 1;
        let seq = Seq(self.last_seq);
        let keys: Vec<_> = message.ledger_keys().collect();
        if !keys.is_empty() {
            let fingerprint = message.fingerprint();
            self.ledger.extend(keys.into_iter().map(|key| (key, (seq, fingerprint))));
        }
        self.ids.entry(message.id).or_default().push(seq);
        let due_at = message.due_at(now);
        let (idempotency_key, key_policy) = match message.metadata.idempotency {
            Idempotency::None => (None, KeyPolicy::default()),
            Idempotency::Keyed { key, policy, .. } => (Some(key), policy),
        };
        let envelope = Envelope {
            seq,
            id: message.id,
            endpoint: message.metadata.endpoint,
            contract: message.contract,
            payload: message.payload,
            tenant: message.metadata.tenant,
            session: message.metadata.session,
            idempotency_key,
            trace: message.metadata.trace,
            priority: message.metadata.priority,
            headers: message.metadata.headers,
            accepted_at: now,
        };
        let row = Row {
            lane: self.lane_number(&envelope),
            envelope,
            id_supplied: message.id_supplied,
            key_policy,
            attempt: Attempt::FIRST,
            place: Place::Parked { due_at },
            cancel_requested: false,
            history: Vec::new(),
        };
        let first = self.join_session(&row);
        self.lanes[row.lane].count(Status::Parked, 1);
        self.rows.insert(seq, row);
        if first {
            self.place(seq, Place::Ready { due_at });
        }
        seq
    }

    fn lane_number(&mut self, envelope: &Envelope) -> usize {
        let key = (envelope.endpoint.clone(), envelope.contract.clone());
        let lanes = &mut self.lanes;
        *self.lane_numbers.entry(key.clone()).or_insert_with(|| {
            lanes.push(Lane { key, ready: Default::default(), tally: BTreeMap::new() });
            lanes.len() - 1
        })
    }

    /// Whether the message is the head of its session now, or has none.
    fn join_session(&mut self, row: &Row) -> bool {
        let Some(id) = row.session_id() else { return true };
        let seq = row.envelope.seq;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.parked.insert(seq);
            return false;
        }
        self.sessions.insert(id, Session { head: seq, parked: BTreeSet::new() });
        true
    }
}
