//! Appending: what goes in, what comes back, and the rule that tells a new message from a known one.

use crate::error::{StoreError, StoreErrorKind};
use crate::id::MessageId;
use crate::limits::{APPEND_BATCH_MAX, PARKED_PER_SESSION_MAX};
use crate::message::{Fingerprint, LedgerKey, NewMessage};
use crate::metadata::{Idempotency, OnConflict};
use crate::name::{EndpointName, SessionKey, TenantName};
use crate::receipt::{AcceptOutcome, Receipt};
use crate::state::Status;
use jiff::Timestamp;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Messages that are stored together or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppendGroup {
    /// In the order in which they are accepted.
    pub messages: Vec<NewMessage>,
}

impl From<NewMessage> for AppendGroup {
    fn from(message: NewMessage) -> Self {
        Self { messages: vec![message] }
    }
}

impl AppendGroup {
    /// Checks the bound of an append.
    ///
    /// # Errors
    /// `Invalid`: more than [`APPEND_BATCH_MAX`] messages.
    pub fn check_all(groups: &[Self]) -> Result<(), StoreError> {
        let messages: usize = groups.iter().map(|group| group.messages.len()).sum();
        if messages > APPEND_BATCH_MAX {
            let detail = format!("{messages} messages in one append; send at most {APPEND_BATCH_MAX}");
            return Err(StoreError::new(StoreErrorKind::Invalid, "append", detail));
        }
        Ok(())
    }
}

/// What a session is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionRef {
    /// Where it is handled.
    pub endpoint: EndpointName,
    /// Whose it is.
    pub tenant: Option<TenantName>,
    /// Its key.
    pub key: SessionKey,
}

impl SessionRef {
    /// The session of a message, if it has one.
    pub fn of(message: &NewMessage) -> Option<Self> {
        let metadata = &message.metadata;
        let key = metadata.session.clone()?;
        Some(Self { endpoint: metadata.endpoint.clone(), tenant: metadata.tenant.clone(), key })
    }
}

/// The answer for one message of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// It is stored now, or it was before: see the receipt's outcome.
    Stored(Receipt),
    /// Its supplied id or key is known with other content. Nothing of its group was stored.
    Conflict {
        /// The message that has the id or key.
        first: MessageId,
        /// Which of the two is taken: `id` or `idempotency_key`.
        field: &'static str,
    },
    /// Its session has too many messages waiting. Nothing of its group was stored.
    SessionFull,
    /// Another message of its group was refused, so this one was not stored either.
    NotStored,
}

impl Appended {
    /// The receipt, if the message is stored.
    pub fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Stored(receipt) => Some(receipt),
            _ => None,
        }
    }
}

/// What the ledger knows about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The content of the first accept.
    pub fingerprint: Fingerprint,
    /// The first receipt, with the present status as its outcome.
    pub receipt: Receipt,
}

/// What an append will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendPlan {
    /// One for each message, by group.
    pub groups: Vec<Vec<Planned>>,
}

/// What an append does with one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planned {
    /// Insert it.
    Insert(Receipt),
    /// Answer with this.
    Answer(Appended),
}

impl AppendPlan {
    /// What [`plan_append`] decides where no key is known, none repeats, and every session has room: all are inserted.
    pub fn all_new(groups: &[AppendGroup], accepted_at: Timestamp) -> Self {
        let insert = |message| Planned::Insert(first_receipt(message, accepted_at));
        let groups = groups.iter().map(|group| group.messages.iter().map(insert).collect());
        Self { groups: groups.collect() }
    }

    /// How many messages are inserted.
    pub fn inserts(&self) -> usize {
        self.groups.iter().flatten().filter(|planned| matches!(planned, Planned::Insert(_))).count()
    }

    /// The messages of the planned groups that are inserted, in order.
    pub fn new_messages<'g>(&self, groups: &'g [AppendGroup]) -> Vec<&'g NewMessage> {
        let messages = groups.iter().flat_map(|group| &group.messages).zip(self.groups.iter().flatten());
        let new = messages.filter(|(_, planned)| matches!(planned, Planned::Insert(_)));
        new.map(|(message, _)| message).collect()
    }

    /// The answers, once the inserts are durable.
    pub fn into_answers(self) -> Vec<Vec<Appended>> {
        let answer = |planned| match planned {
            Planned::Insert(receipt) => Appended::Stored(receipt),
            Planned::Answer(answer) => answer,
        };
        self.groups.into_iter().map(|group| group.into_iter().map(answer).collect()).collect()
    }
}

/// Decides for each message whether it is new, known, or in conflict.
///
/// `known` holds the ledger's entries for every [`ledger key`](NewMessage::ledger_keys) of the batch that exists;
/// `room` says how many more messages fit into a message's session: as many as may still wait behind its head, one more
/// than [`PARKED_PER_SESSION_MAX`] if it has no head, and more than that without a session.
pub fn plan_append<S: BuildHasher>(
    groups: &[AppendGroup],
    known: &HashMap<LedgerKey, LedgerEntry, S>,
    accepted_at: Timestamp,
    mut room: impl FnMut(&NewMessage) -> u64,
) -> AppendPlan {
    let mut fresh: HashMap<LedgerKey, LedgerEntry> = HashMap::new();
    let mut waiting: HashMap<SessionRef, u64> = HashMap::new();
    let groups = groups
        .iter()
        .map(|group| plan_group(group, known, &mut fresh, &mut waiting, accepted_at, &mut room))
        .collect();
    AppendPlan { groups }
}

fn plan_group<S: BuildHasher>(
    group: &AppendGroup,
    known: &HashMap<LedgerKey, LedgerEntry, S>,
    fresh: &mut HashMap<LedgerKey, LedgerEntry>,
    waiting: &mut HashMap<SessionRef, u64>,
    accepted_at: Timestamp,
    room: &mut impl FnMut(&NewMessage) -> u64,
) -> Vec<Planned> {
    let mut added = Vec::new();
    let mut joined = Vec::new();
    let mut planned: Vec<Planned> = Vec::with_capacity(group.messages.len());
    for message in &group.messages {
        let session = SessionRef::of(message);
        let before = session.as_ref().and_then(|session| waiting.get(session)).copied().unwrap_or_default();
        let room_left = room(message);
        // A session that has no head yet has room for one more than may wait.
        let waits = before > 0 || room_left <= PARKED_PER_SESSION_MAX;
        let status = if waits { Status::Parked } else { Status::Pending };
        let one = plan_one(message, known, fresh, accepted_at, status, &mut added);
        let Some(session) = session.filter(|_| matches!(one, Planned::Insert(_))) else {
            planned.push(one);
            continue;
        };
        *waiting.entry(session.clone()).or_default() += 1;
        joined.push(session);
        let fits = before < room_left;
        planned.push(if fits { one } else { Planned::Answer(Appended::SessionFull) });
    }
    let refused = |planned: &Planned| {
        matches!(planned, Planned::Answer(Appended::Conflict { .. } | Appended::SessionFull))
    };
    if planned.iter().any(refused) {
        for key in added {
            fresh.remove(&key);
        }
        for session in joined {
            waiting.entry(session).and_modify(|joining| *joining -= 1);
        }
        for entry in &mut planned {
            if !refused(entry) {
                *entry = Planned::Answer(Appended::NotStored);
            }
        }
    }
    planned
}

/// `status` is where the message will stand if it is new.
fn plan_one<S: BuildHasher>(
    message: &NewMessage,
    known: &HashMap<LedgerKey, LedgerEntry, S>,
    fresh: &mut HashMap<LedgerKey, LedgerEntry>,
    accepted_at: Timestamp,
    status: Status,
    added: &mut Vec<LedgerKey>,
) -> Planned {
    // The id comes first: where id and key point at different messages, the id wins.
    let found =
        message.ledger_keys().find_map(|key| fresh.get(&key).or_else(|| known.get(&key)).map(|e| (key, e)));
    if let Some((key, entry)) = found {
        let by_id =
            message.id_supplied && key == LedgerKey::of_id(message.metadata.tenant.as_ref(), message.id);
        return Planned::Answer(answer_known(message, entry, by_id));
    }
    let receipt = first_receipt(message, accepted_at);
    let mut first = None;
    for key in message.ledger_keys() {
        let entry = first.get_or_insert_with(|| {
            let outcome = AcceptOutcome::AlreadyAccepted { status };
            LedgerEntry {
                fingerprint: message.fingerprint(),
                receipt: Receipt { outcome, ..receipt.clone() },
            }
        });
        fresh.insert(key, entry.clone());
        added.push(key);
    }
    Planned::Insert(receipt)
}

fn first_receipt(message: &NewMessage, accepted_at: Timestamp) -> Receipt {
    Receipt {
        id: message.id,
        contract: message.contract.clone(),
        endpoint: message.metadata.endpoint.clone(),
        accepted_at,
        tenant: message.metadata.tenant.clone(),
        trace: message.metadata.trace.clone(),
        outcome: AcceptOutcome::Accepted,
    }
}

fn answer_known(message: &NewMessage, entry: &LedgerEntry, by_id: bool) -> Appended {
    let return_first = match &message.metadata.idempotency {
        Idempotency::Keyed { on_conflict, .. } => *on_conflict == OnConflict::ReturnFirst,
        Idempotency::None => false,
    };
    if return_first || entry.fingerprint == message.fingerprint() {
        return Appended::Stored(entry.receipt.clone());
    }
    let field = if by_id { "id" } else { "idempotency_key" };
    Appended::Conflict { first: entry.receipt.id, field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentType, Contract, IdempotencyKey, Metadata, Payload, SessionKey};

    fn in_session(key: &str) -> NewMessage {
        let metadata = Metadata {
            session: Some(SessionKey::new("s").unwrap()),
            idempotency: Idempotency::keyed(IdempotencyKey::new(key).unwrap()),
            ..Metadata::default()
        };
        let contract = Contract::new("test.append", 1).unwrap();
        NewMessage::new(contract, Payload::new("{}", ContentType::default()).unwrap(), metadata)
    }

    fn plan(groups: &[AppendGroup], room: u64) -> Vec<Vec<Appended>> {
        let known: HashMap<LedgerKey, LedgerEntry> = HashMap::new();
        plan_append(groups, &known, Timestamp::UNIX_EPOCH, |_| room).into_answers()
    }

    #[test]
    fn messages_whose_keys_differ_are_all_new() {
        let groups = [AppendGroup::from(in_session("a")), AppendGroup::from(in_session("b"))];
        let known: HashMap<LedgerKey, LedgerEntry> = HashMap::new();
        let plan = plan_append(&groups, &known, Timestamp::UNIX_EPOCH, |_| u64::MAX);
        assert_eq!(plan, AppendPlan::all_new(&groups, Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn a_full_session_refuses_the_whole_group_and_no_other() {
        let groups = [
            AppendGroup::from(in_session("a")),
            AppendGroup { messages: vec![in_session("b"), in_session("c")] },
            AppendGroup::from(in_session("d")),
        ];
        let answers = plan(&groups, 2);
        assert!(answers[0][0].receipt().is_some());
        assert_eq!(answers[1], [Appended::NotStored, Appended::SessionFull]);
        assert!(answers[2][0].receipt().is_some(), "a refused group takes no room");
    }

    #[test]
    fn a_refused_group_leaves_its_keys_free() {
        let groups = [
            AppendGroup { messages: vec![in_session("a"), in_session("b")] },
            AppendGroup::from(in_session("a")),
        ];
        let answers = plan(&groups, 1);
        assert_eq!(answers[0], [Appended::NotStored, Appended::SessionFull]);
        assert!(answers[1][0].receipt().is_some_and(Receipt::is_new));
    }

    #[test]
    fn a_session_takes_a_head_and_as_many_as_may_wait() {
        let groups: Vec<_> =
            (0..3).map(|number| AppendGroup::from(in_session(&number.to_string()))).collect();
        let stored = |room| plan(&groups, room).iter().flatten().filter(|a| a.receipt().is_some()).count();
        assert_eq!((stored(0), stored(2), stored(PARKED_PER_SESSION_MAX + 1)), (0, 2, 3));
    }
}
