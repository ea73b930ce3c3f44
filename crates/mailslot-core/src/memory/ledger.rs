//! What the memory store remembers of deliveries.

use super::table::{Place, Table};
use crate::delivered::{DeliveryIdentity, DeliveryKey};
use crate::id::{Attempt, Seq};
use crate::message::NewMessage;
use crate::name::EndpointName;
use crate::outcome::Disposition;
use crate::state::Status;
use crate::store::{Claim, Claimed, Concluded, Conclusion, Known, Lookup, Question, Stored};
use crate::stored::later;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use uuid::Uuid;

/// The records, and which stored message belongs to which.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    records: BTreeMap<DeliveryKey, Record>,
    by_message: HashMap<Seq, DeliveryKey>,
}

#[derive(Debug)]
struct Record {
    endpoint: EndpointName,
    at: Timestamp,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Completed,
    Stored(Seq),
    Claimed { owner: Uuid, until: Timestamp },
}

impl Deliveries {
    fn set(&mut self, identity: &DeliveryIdentity, state: State, at: Timestamp) {
        let key = identity.key();
        if let State::Stored(seq) = state {
            self.by_message.insert(seq, key);
        }
        self.records.insert(key, Record { endpoint: identity.endpoint().clone(), at, state });
    }

    /// A stored message goes: what was handled stays known, and anything else is as if it had never come.
    pub(super) fn message_goes(&mut self, seq: Seq, place: &Place) {
        let Some(key) = self.by_message.remove(&seq) else { return };
        match (place, self.records.get_mut(&key)) {
            (Place::Ended { status: Status::Completed, at }, Some(record)) => {
                (record.state, record.at) = (State::Completed, *at);
            }
            _ => drop(self.records.remove(&key)),
        }
    }
}

impl Table {
    pub(super) fn look_up(&self, question: &Question, now: Timestamp) -> Lookup {
        let known = question.identity.as_ref().and_then(|identity| self.known(identity, now));
        let session = question.session.as_ref().and_then(|session| self.sessions.get(session));
        Lookup { known, blocked_by: session.map(|session| self.row(session.head).envelope.id) }
    }

    fn known(&self, identity: &DeliveryIdentity, now: Timestamp) -> Option<Known> {
        match self.deliveries.records.get(&identity.key())?.state {
            State::Completed => Some(Known::Completed),
            State::Stored(seq) => {
                let row = self.row(seq);
                Some(Known::Stored { id: row.envelope.id, status: row.place.status() })
            }
            State::Claimed { until, .. } => (until > now).then_some(Known::Claimed { until }),
        }
    }

    pub(super) fn conclude(&mut self, conclusion: Conclusion, now: Timestamp) -> Concluded {
        match conclusion {
            Conclusion::Handled(identity) => match self.known(&identity, now) {
                Some(known @ Known::Stored { .. }) => Concluded::Known(known),
                Some(Known::Completed) => Concluded::Recorded,
                // Success is success, whoever has claimed it.
                None | Some(Known::Claimed { .. }) => {
                    self.deliveries.set(&identity, State::Completed, now);
                    Concluded::Recorded
                }
            },
            Conclusion::Store(stored) => self.store_delivery(*stored, now),
        }
    }

    fn store_delivery(&mut self, stored: Stored, now: Timestamp) -> Concluded {
        let Stored { identity, message, handled } = stored;
        let known = identity.as_ref().and_then(|identity| self.known(identity, now));
        if let Some(known @ (Known::Completed | Known::Stored { .. })) = known {
            return Concluded::Known(known);
        }
        if self.room(&message) == 0 {
            return Concluded::SessionFull;
        }
        let NewMessage { id, .. } = message;
        let seq = self.insert(message, now);
        if let Some(identity) = identity {
            self.deliveries.set(&identity, State::Stored(seq), now);
        }
        if let (Place::Ready { .. }, Some((disposition, error))) = (&self.row(seq).place, handled) {
            self.row_mut(seq).attempt = Attempt::FIRST.leased();
            self.apply(seq, Disposition::effect(&disposition, false), error, now);
        }
        Concluded::Stored { id, status: self.row(seq).place.status() }
    }

    pub(super) fn claim_delivery(&mut self, claim: &Claim, now: Timestamp) -> Claimed {
        let record = self.deliveries.records.get(&claim.identity.key());
        let is_own = record.is_some_and(
            |record| matches!(record.state, State::Claimed { owner, .. } if owner == claim.owner),
        );
        match self.known(&claim.identity, now) {
            Some(known) if !is_own => Claimed::Refused(known),
            _ => {
                let until = later(now, claim.duration);
                // Dated by its end, so that what nobody ended goes as any other record.
                let state = State::Claimed { owner: claim.owner, until };
                self.deliveries.set(&claim.identity, state, until);
                Claimed::Granted { until }
            }
        }
    }

    pub(super) fn give_up_delivery(&mut self, identity: &DeliveryIdentity, owner: Uuid) {
        let records = &mut self.deliveries.records;
        let is_own =
            |record: &Record| matches!(record.state, State::Claimed { owner: held, .. } if held == owner);
        if records.get(&identity.key()).is_some_and(is_own) {
            records.remove(&identity.key());
        }
    }

    pub(super) fn purge_deliveries(
        &mut self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
        now: Timestamp,
    ) -> usize {
        let retention = SignedDuration::try_from(retention).unwrap_or(SignedDuration::MAX);
        let goes = |record: &Record| {
            !matches!(record.state, State::Stored(_)) && now.duration_since(record.at) > retention
        };
        let records = self.deliveries.records.iter();
        let mut old: Vec<_> = records
            .filter(|(_, record)| record.endpoint == *endpoint && goes(record))
            .map(|(key, record)| (record.at, *key))
            .collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, key) in &old {
            self.deliveries.records.remove(key);
        }
        old.len()
    }
}
