//! The places of new messages.

use super::slot::Slot;
use crate::limits::PARKED_PER_SESSION_MAX;
use crate::message::NewMessage;
use crate::state::Status;
use crate::store::SessionRef;
use crate::stored::{code_of_policy, micros};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};

/// The sessions of an append that have a head: each one's number, and how many messages wait behind the head.
#[derive(Debug, Clone, Default)]
pub struct Sessions(HashMap<SessionRef, (i64, u64)>);

impl FromIterator<(SessionRef, (i64, u64))> for Sessions {
    fn from_iter<I: IntoIterator<Item = (SessionRef, (i64, u64))>>(sessions: I) -> Self {
        Self(sessions.into_iter().collect())
    }
}

impl Sessions {
    /// How many more messages fit into a message's session, as [`plan_append`](crate::store::plan_append) asks.
    pub fn room(&self, message: &NewMessage) -> u64 {
        let Some(session) = SessionRef::of(message) else { return u64::MAX };
        let parked = self.0.get(&session).map(|(_, parked)| *parked);
        parked.map_or(PARKED_PER_SESSION_MAX + 1, |parked| PARKED_PER_SESSION_MAX.saturating_sub(parked))
    }
}

/// A new message with the number and the lane that it got.
#[derive(Debug, Clone, Copy)]
pub struct Numbered<'m> {
    /// Its place in acceptance order.
    pub seq: i64,
    /// The number of its endpoint and contract.
    pub lane: i64,
    /// The message.
    pub message: &'m NewMessage,
}

/// Where new messages go: heads and messages without a session become pending; the others park.
#[derive(Debug, Default)]
pub struct Places {
    /// New sessions. One is numbered by its first head, which is its head now.
    pub sessions: Vec<(i64, SessionRef)>,
    /// Pending messages, and from when they are due, in microseconds.
    pub ready: Vec<(Slot, i64)>,
    /// Messages that wait in their session, and from when they would be due.
    pub parked: Vec<(Slot, i64)>,
    /// By how much the counters grow.
    pub tally: BTreeMap<(i64, Status), i64>,
}

impl Places {
    /// The places of messages in acceptance order, accepted at `now`.
    pub fn of<'m>(
        messages: impl IntoIterator<Item = Numbered<'m>>,
        now: Timestamp,
        mut sessions: Sessions,
    ) -> Self {
        let mut places = Self::default();
        for new in messages {
            let session = SessionRef::of(new.message);
            let waits_in = session.as_ref().and_then(|session| sessions.0.get(session)).map(|(id, _)| *id);
            let due_at = micros(new.message.due_at(now));
            if let Some(id) = waits_in {
                places.parked.push((new.slot(Some(id)), due_at));
                *places.tally.entry((new.lane, Status::Parked)).or_default() += 1;
                continue;
            }
            places.ready.push((new.slot(session.is_some().then_some(new.seq)), due_at));
            *places.tally.entry((new.lane, Status::Pending)).or_default() += 1;
            if let Some(session) = session {
                sessions.0.insert(session.clone(), (new.seq, 0));
                places.sessions.push((new.seq, session));
            }
        }
        places
    }

    /// Whether a message is due at once and belongs to no session. A batch of such, which most are, may be placed by
    /// a cheaper statement.
    pub fn is_plain(message: &NewMessage, now: Timestamp) -> bool {
        message.metadata.session.is_none() && message.due_at(now) == now
    }
}

impl Numbered<'_> {
    fn slot(&self, session: Option<i64>) -> Slot {
        let metadata = &self.message.metadata;
        Slot {
            seq: self.seq,
            lane: self.lane,
            priority: i64::from(metadata.priority.rank()),
            generation: 0,
            attempt: 0,
            session,
            key_policy: code_of_policy(metadata.idempotency.policy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentType, Contract, Metadata, Payload, SessionKey, Visibility};
    use jiff::SignedDuration;

    fn message(session: Option<&str>) -> NewMessage {
        let session = session.map(|key| SessionKey::new(key).unwrap());
        let contract = Contract::new("test.places", 1).unwrap();
        let payload = Payload::new("{}", ContentType::default()).unwrap();
        NewMessage::new(contract, payload, Metadata { session, ..Metadata::default() })
    }

    #[test]
    fn the_first_of_a_session_is_its_head_and_the_others_wait_behind_it() {
        let messages = ["new", "old", "new"].map(|key| message(Some(key)));
        let known = [(SessionRef::of(&messages[1]).unwrap(), (7, 3))];
        let numbered = (20..).zip(&messages).map(|(seq, message)| Numbered { seq, lane: 1, message });
        let places = Places::of(numbered, Timestamp::UNIX_EPOCH, known.into_iter().collect());
        let of = |slots: &[(Slot, i64)]| slots.iter().map(|(s, _)| (s.seq, s.session)).collect::<Vec<_>>();
        assert_eq!(of(&places.ready), [(20, Some(20))]);
        assert_eq!(of(&places.parked), [(21, Some(7)), (22, Some(20))]);
        assert_eq!(places.sessions, [(20, SessionRef::of(&messages[0]).unwrap())]);
        let tally = BTreeMap::from([((1, Status::Pending), 1), ((1, Status::Parked), 2)]);
        assert_eq!(places.tally, tally);
    }

    #[test]
    fn room_is_what_may_still_wait_and_the_head() {
        let sessions = ["full", "used"].map(|key| SessionRef::of(&message(Some(key))).unwrap());
        let known: Sessions = sessions.into_iter().zip([(1, PARKED_PER_SESSION_MAX + 1), (2, 1)]).collect();
        assert_eq!(known.room(&message(Some("full"))), 0);
        assert_eq!(known.room(&message(Some("used"))), PARKED_PER_SESSION_MAX - 1);
        assert_eq!(known.room(&message(Some("new"))), PARKED_PER_SESSION_MAX + 1);
        assert_eq!(known.room(&message(None)), u64::MAX);
    }

    #[test]
    fn plain_is_what_is_due_at_once_and_alone() {
        let now = Timestamp::UNIX_EPOCH;
        let mut later = message(None);
        later.metadata.visibility = Visibility::After(SignedDuration::from_secs(1));
        let plain = [message(None), later, message(Some("s"))].map(|message| Places::is_plain(&message, now));
        assert_eq!(plain, [true, false, false]);
    }
}
