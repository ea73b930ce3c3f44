//! What must hold after every round.

use super::backend::Backend;
use super::fence::Fence;
use super::journal;
use super::workload::{FollowUp, Kind, Request, Step};
use mailslot_core::store::{Filter, MessageDetail, PageRequest};
use mailslot_core::{Message, OperatorStore as _, OutcomeKind, Reason, Status};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The messages that a store holds after a round.
struct Held {
    steps: BTreeMap<String, (Step, MessageDetail)>,
    /// The names in the follow-ups.
    followed: Vec<String>,
}

/// Panics with what does not hold, and says how many messages there were and how many verdicts came too late.
pub(crate) async fn nothing_is_lost<B: Backend>(backend: &B, requests: Vec<Request>) -> (usize, u64) {
    let store = backend.open().await.expect("the store opens");
    let violations = store.check().await.expect("the check runs");
    assert!(violations.is_empty(), "invariants are violated: {violations:#?}");
    assert!(store.leases(10).await.expect("leases are listed").is_empty(), "a lease outlived its messages");
    let held = hold(all_messages(&store).await);
    check_receipts(backend, &held, &requests);
    check_requests(&held, &requests);
    check_rows_of_callers(backend, &held, &requests).await;
    for (step, detail) in held.steps.values() {
        check_end(step, detail);
    }
    check_outside_effects(backend, &held);
    let fence = Fence::read(backend.dir());
    fence.check();
    check_inside_effects(backend, &held, &fence).await;
    (held.steps.len() + held.followed.len(), fence.lost)
}

async fn all_messages<S: mailslot_engine::Store>(store: &S) -> Vec<MessageDetail> {
    let mut details = Vec::new();
    let mut request = PageRequest { size: 1_000, ..PageRequest::default() };
    loop {
        let page = store.query(&Filter::default(), &request).await.expect("the query runs");
        for record in page.items {
            details.extend(store.get(record.envelope.id).await.expect("the message is there"));
        }
        request.after = page.next;
        if request.after.is_none() {
            return details;
        }
    }
}

fn hold(details: Vec<MessageDetail>) -> Held {
    let mut held = Held { steps: BTreeMap::new(), followed: Vec::new() };
    for detail in details {
        let payload = detail.record.envelope.payload.bytes();
        if detail.record.envelope.contract.name() == FollowUp::NAME {
            let FollowUp(name) = serde_json::from_slice(payload).expect("a payload is a follow-up");
            assert_eq!(detail.record.status, Status::Completed, "the follow-up of {name}");
            held.followed.push(name);
            continue;
        }
        let step: Step = serde_json::from_slice(payload).expect("a payload is a step");
        let name = step.name();
        assert!(held.steps.insert(name.clone(), (step, detail)).is_none(), "{name} was stored twice");
    }
    held.followed.sort_unstable();
    held
}

/// Every receipt that was ever given names a message that is there, the same for every repetition under one key, and
/// every request was answered in the end.
fn check_receipts<B: Backend>(backend: &B, held: &Held, requests: &[Request]) {
    let mut answered = BTreeSet::new();
    for words in journal::read(backend.dir(), journal::RECEIPTS) {
        let name = format!("{}/{}/{}", words[0], words[1], words[2]);
        let Some((_, detail)) = held.steps.get(&name) else { panic!("{name} was accepted and is lost") };
        assert_eq!(detail.record.envelope.id.to_string(), words[3], "{name} has several receipts");
        answered.insert(words[0].clone());
    }
    for Request { name, .. } in requests {
        assert!(answered.contains(name), "{name} was never answered");
    }
}

/// Each try of a request is there as a whole and in order, or not at all; with a key there is one.
fn check_requests(held: &Held, requests: &[Request]) {
    let mut tries: HashMap<(&str, i64), Vec<(u32, i64)>> = HashMap::new();
    for (step, detail) in held.steps.values() {
        let messages = tries.entry((&step.request, step.nonce)).or_default();
        messages.push((step.place, detail.record.envelope.seq.0));
    }
    for Request { name, has_key, messages, .. } in requests {
        let of_request = tries.iter().filter(|((request, _), _)| request == name);
        let mut count = 0;
        for ((_, nonce), found) in of_request {
            count += 1;
            let mut found = found.clone();
            found.sort_unstable();
            assert_eq!(found.len(), messages.len(), "a part of {name}/{nonce} is missing");
            assert!(found.is_sorted_by_key(|(_, seq)| *seq), "{name}/{nonce} is out of order: {found:?}");
        }
        assert!(count == 1 || !has_key && count > 1, "{name} is there {count} times");
    }
}

/// A caller's row is there if and only if the message of its transaction is.
async fn check_rows_of_callers<B: Backend>(backend: &B, held: &Held, requests: &[Request]) {
    let in_transactions: BTreeSet<_> = requests
        .iter()
        .filter(|request| request.how == super::workload::How::InTransaction)
        .map(|request| request.name.as_str())
        .collect();
    let wanted: Vec<_> = held
        .steps
        .iter()
        .filter(|(_, (step, _))| in_transactions.contains(step.request.as_str()))
        .map(|(name, (step, _))| (name.clone(), step.nonce))
        .collect();
    let rows = backend.requested().await.expect("the rows are read");
    assert_eq!(sorted(rows), sorted(wanted), "callers' rows and their messages must come together");
}

fn sorted<T: Ord>(mut rows: Vec<T>) -> Vec<T> {
    rows.sort_unstable();
    rows
}

/// A message has exactly one end, the last thing in its history, and the right one; no attempt has two outcomes.
fn check_end(step: &Step, detail: &MessageDetail) {
    let (name, history) = (step.name(), &detail.history);
    let ends = history.iter().filter(|outcome| outcome.kind.end().is_some()).count();
    assert_eq!(ends, 1, "{name} ended {ends} times: {history:#?}");
    let last = history.last().expect("it ended");
    assert_eq!(last.kind.end(), Some(detail.record.status));
    let wanted = if step.kind == Kind::Refused { Status::DeadLettered } else { Status::Completed };
    assert_eq!(detail.record.status, wanted, "{name}: {history:#?}");
    let mut attempts: Vec<_> = history.iter().map(|outcome| outcome.attempt.number).collect();
    attempts.dedup();
    assert!(attempts.is_sorted(), "{name}: attempts went back");
    assert_eq!(attempts.len(), history.len(), "{name}: an attempt has two outcomes");
}

/// Effects outside of the database happened for every completed message, never more often than it was attempted, and
/// first in the order of its session.
fn check_outside_effects<B: Backend>(backend: &B, held: &Held) {
    let mut times: HashMap<String, u32> = HashMap::new();
    let mut last_of_session: HashMap<String, i64> = HashMap::new();
    for words in journal::read(backend.dir(), journal::EFFECTS) {
        let times = times.entry(words[0].clone()).or_default();
        *times += 1;
        let envelope = &held.steps[&words[0]].1.record.envelope;
        let Some(session) = envelope.session.as_ref().filter(|_| *times == 1) else { continue };
        let last = last_of_session.entry(session.to_string()).or_default();
        assert!(*last < envelope.seq.0, "session {session} ran {} after {last}", envelope.seq);
        *last = envelope.seq.0;
    }
    for (name, (step, detail)) in &held.steps {
        let times = times.get(name).copied().unwrap_or_default();
        let attempts = detail.record.attempt.number;
        match step.kind {
            Kind::Plain | Kind::Flaky | Kind::Slow => {
                assert!((1..=attempts).contains(&times), "{name} ran {times} times in {attempts}");
            }
            Kind::Transactional | Kind::Refused | Kind::Deadly => assert_eq!(times, 0, "{name}"),
        }
    }
}

/// Effects in the handler's transaction happened exactly once for each completed message, and under its last lease; so
/// did the follow-ups that were accepted in it.
async fn check_inside_effects<B: Backend>(backend: &B, held: &Held, fence: &Fence) {
    let rows = backend.handled().await.expect("the effects are read");
    for (name, generation) in &rows {
        let seq = held.steps[name].1.record.envelope.seq.0;
        assert!(fence.is_last(seq, *generation), "{name} was completed under the old lease {generation}");
    }
    let transactional = held.steps.iter().filter(|(_, (step, _))| step.kind == Kind::Transactional);
    let wanted: Vec<_> = transactional.map(|(name, _)| name.clone()).collect();
    let found = sorted(rows.into_iter().map(|(name, _)| name).collect());
    assert_eq!(found, sorted(wanted), "transactional effects must happen exactly once");
    assert_eq!(held.followed, found, "a transaction accepts its follow-up exactly once");
}

/// A message whose handler kills its process ended as `crashed` after its attempts, and took nobody with it.
pub(crate) async fn crashed_after<B: Backend>(backend: &B, attempts: u32) {
    let store = backend.open().await.expect("the store opens");
    assert_eq!(store.check().await.expect("the check runs"), Vec::new());
    for (step, detail) in hold(all_messages(&store).await).steps.into_values() {
        if step.kind == Kind::Deadly {
            assert_eq!(detail.record.status, Status::DeadLettered);
            assert_eq!(detail.record.reason, Some(Reason::Crashed));
            assert_eq!(detail.record.attempt.number, attempts);
            let expired =
                detail.history.iter().filter(|outcome| outcome.kind == OutcomeKind::Expired).count();
            assert_eq!(expired, attempts as usize, "each crash is in its history");
        } else {
            assert_eq!(detail.record.status, Status::Completed);
        }
    }
}
