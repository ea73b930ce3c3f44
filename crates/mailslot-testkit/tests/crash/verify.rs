//! What must hold after every round.

use super::workload::{Kind, MESSAGES, Step};
use mailslot_core::store::{Filter, MessageDetail, PageRequest};
use mailslot_core::{OperatorStore, OutcomeKind, Reason, Status};
use mailslot_store_sqlite::SqliteStore;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Panics with what does not hold.
pub(crate) async fn nothing_is_lost(dir: &Path) {
    let store = SqliteStore::connect(&dir.join("inbox.db").to_string_lossy()).await.expect("the store opens");
    let violations = store.check().await.expect("the check runs");
    assert!(violations.is_empty(), "invariants are violated: {violations:#?}");
    let details = all_messages(&store).await;
    check_receipts(dir, &details);
    check_ends(&details);
    check_outside_effects(dir, &details);
    check_inside_effects(dir, &details).await;
    assert!(store.leases(10).await.expect("leases are listed").is_empty(), "a lease outlived its messages");
}

async fn all_messages(store: &SqliteStore) -> Vec<MessageDetail> {
    let page = PageRequest { size: 1_000, ..PageRequest::default() };
    let page = store.query(&Filter::default(), &page).await.expect("the query runs");
    assert!(page.next.is_none(), "more messages than were accepted");
    let mut details = Vec::new();
    for record in page.items {
        details.extend(store.get(record.envelope.id).await.expect("the message is there"));
    }
    details
}

/// Every receipt that was ever given names a message, and each key names one and the same for ever.
fn check_receipts(dir: &Path, details: &[MessageDetail]) {
    let receipts = std::fs::read_to_string(dir.join("receipts.log")).unwrap_or_default();
    let mut ids: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for line in receipts.lines() {
        let mut words = line.split(' ');
        let index = words.next().and_then(|word| word.parse().ok()).expect("a receipt has an index");
        ids.entry(index).or_default().insert(words.next().expect("a receipt has an id"));
    }
    let stored: BTreeSet<String> =
        details.iter().map(|detail| detail.record.envelope.id.to_string()).collect();
    for (index, ids) in &ids {
        assert_eq!(ids.len(), 1, "step {index} has several receipts: {ids:?}");
        for id in ids {
            assert!(stored.contains(*id), "step {index} was accepted as {id} and is lost");
        }
    }
    assert_eq!(ids.len(), MESSAGES as usize, "the last worker accepted everything");
    assert_eq!(details.len(), MESSAGES as usize, "each key has one message");
}

/// Every message has exactly one end, the last thing in its history, and the right one.
fn check_ends(details: &[MessageDetail]) {
    for detail in details {
        let step = step_of(detail);
        let ends = detail.history.iter().filter(|outcome| outcome.kind.end().is_some()).count();
        assert_eq!(ends, 1, "step {} ended {ends} times: {:#?}", step.index, detail.history);
        let last = detail.history.last().expect("it ended");
        assert_eq!(last.kind.end(), Some(detail.record.status));
        let wanted = if step.kind == Kind::Refused { Status::DeadLettered } else { Status::Completed };
        assert_eq!(detail.record.status, wanted, "step {}: {:#?}", step.index, detail.history);
        let mut attempts: Vec<_> = detail.history.iter().map(|outcome| outcome.attempt.number).collect();
        attempts.dedup();
        assert!(attempts.is_sorted(), "step {}: attempts went back", step.index);
        assert_eq!(attempts.len(), detail.history.len(), "step {}: an attempt has two outcomes", step.index);
    }
}

fn step_of(detail: &MessageDetail) -> Step {
    serde_json::from_slice(detail.record.envelope.payload.bytes()).expect("a payload is a step")
}

/// Effects outside of the database happened for every completed message, never more often than it was attempted, and
/// first in the order of its session.
fn check_outside_effects(dir: &Path, details: &[MessageDetail]) {
    let effects = std::fs::read_to_string(dir.join("effects.log")).unwrap_or_default();
    let mut times: HashMap<u32, u32> = HashMap::new();
    let mut first_seen = Vec::new();
    for line in effects.lines() {
        let index: u32 =
            line.split(' ').next().and_then(|word| word.parse().ok()).expect("an effect has an index");
        let times = times.entry(index).or_default();
        if *times == 0 {
            first_seen.push(index);
        }
        *times += 1;
    }
    let mut last_of_session: HashMap<String, i64> = HashMap::new();
    let by_index: HashMap<u32, &MessageDetail> =
        details.iter().map(|detail| (step_of(detail).index, detail)).collect();
    for index in first_seen {
        let envelope = &by_index[&index].record.envelope;
        let Some(session) = &envelope.session else { continue };
        let last = last_of_session.entry(session.to_string()).or_default();
        assert!(*last < envelope.seq.0, "session {session} ran {} after {last}", envelope.seq);
        *last = envelope.seq.0;
    }
    for detail in details {
        let step = step_of(detail);
        let times = times.get(&step.index).copied().unwrap_or_default();
        let attempts = detail.record.attempt.number;
        match step.kind {
            Kind::Plain | Kind::Flaky => {
                assert!(
                    (1..=attempts).contains(&times),
                    "step {} ran {times} times in {attempts}",
                    step.index
                );
            }
            Kind::Transactional | Kind::Refused | Kind::Deadly => assert_eq!(times, 0, "step {}", step.index),
        }
    }
}

/// Effects in the handler's transaction happened exactly once for each completed message.
async fn check_inside_effects(dir: &Path, details: &[MessageDetail]) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.join("inbox.db"));
    let mut connection = sqlx::ConnectOptions::connect(&options).await.expect("the file opens");
    let rows: Vec<(i64,)> = sqlx::query_as("SELECT step FROM effect ORDER BY step")
        .fetch_all(&mut connection)
        .await
        .expect("the effects are read");
    let found: Vec<i64> = rows.into_iter().map(|(step,)| step).collect();
    let mut wanted: Vec<i64> = details
        .iter()
        .map(step_of)
        .filter(|step| step.kind == Kind::Transactional)
        .map(|step| i64::from(step.index))
        .collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "transactional effects must happen exactly once");
}

/// A message whose handler kills its process ended as `crashed` after its attempts, and took nobody with it.
pub(crate) async fn crashed_after(dir: &Path, attempts: u32) {
    let store = SqliteStore::connect(&dir.join("inbox.db").to_string_lossy()).await.expect("the store opens");
    assert_eq!(store.check().await.expect("the check runs"), Vec::new());
    let details = all_messages(&store).await;
    for detail in &details {
        if step_of(detail).kind == Kind::Deadly {
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
