//! What must hold of a store's content at any time, seen through its own traits.

use crate::store::{TestStore, every_record};
use mailslot_core::store::{Count, Filter, MessageRecord, SessionRecord};
use mailslot_core::{EndpointName, MessageId, SessionKey, Status, StoreError, TenantName};
use std::collections::BTreeMap;

/// More sessions than any test has.
const SESSIONS_MAX: usize = 100_000;

type SessionId = (EndpointName, Option<TenantName>, SessionKey);

/// Everything that is wrong with the content of a store; empty: nothing is.
///
/// The store's own [`check`](mailslot_core::OperatorStore::check) finds nothing, its counters equal a recount, each
/// message carries exactly the fields of its state, and each session has one head and names it.
///
/// # Errors
/// The store failed.
pub async fn broken_invariants(store: &dyn TestStore) -> Result<Vec<String>, StoreError> {
    let mut broken: Vec<String> = store
        .check()
        .await?
        .into_iter()
        .map(|found| format!("{}: {}", found.invariant, found.found))
        .collect();
    let records = every_record(store, &Filter::default()).await?;
    let counts = store.counts().await?;
    broken.extend(recount(&records, counts));
    broken.extend(records.iter().filter_map(misfit));
    broken.extend(session_faults(&records, &store.sessions(false, SESSIONS_MAX).await?));
    Ok(broken)
}

/// A message whose fields do not belong to its state.
fn misfit(record: &MessageRecord) -> Option<String> {
    let status = record.status;
    let fits = record.due_at.is_some() == matches!(status, Status::Pending | Status::Parked)
        && record.ended_at.is_some() == status.is_terminal()
        && record.leased_until.is_some() == (status == Status::Leased)
        && record.leased_by.is_some() == (status == Status::Leased)
        && (!record.cancel_requested || status == Status::Leased)
        && record.waits_behind.is_some() == (status == Status::Parked)
        && record.handoff.is_some() == (status == Status::Suspended)
        && (status != Status::Leased || record.attempt.number > 0);
    (!fits).then(|| format!("message {} is {status} with the fields of another state", record.envelope.id))
}

fn recount(records: &[MessageRecord], mut counted: Vec<Count>) -> Option<String> {
    let mut tally: BTreeMap<_, u64> = BTreeMap::new();
    for record in records {
        let envelope = &record.envelope;
        *tally.entry((envelope.endpoint.clone(), envelope.contract.clone(), record.status)).or_default() += 1;
    }
    let recounted: Vec<_> = tally
        .into_iter()
        .map(|((endpoint, contract, status), messages)| Count { endpoint, contract, status, messages })
        .collect();
    counted.sort_unstable();
    (recounted != counted).then(|| format!("counted {counted:?} where a recount finds {recounted:?}"))
}

#[derive(Default)]
struct SessionFacts {
    in_flight: Vec<(MessageId, Status)>,
    dead: Vec<MessageId>,
    parked: Vec<Option<MessageId>>,
}

fn session_faults(records: &[MessageRecord], listed: &[SessionRecord]) -> Vec<String> {
    let mut facts: BTreeMap<SessionId, SessionFacts> = BTreeMap::new();
    for record in records {
        let Some(key) = record.envelope.session.clone() else { continue };
        let id = (record.envelope.endpoint.clone(), record.envelope.tenant.clone(), key);
        let facts = facts.entry(id).or_default();
        match record.status {
            Status::Pending | Status::Leased | Status::Suspended => {
                facts.in_flight.push((record.envelope.id, record.status));
            }
            Status::DeadLettered => facts.dead.push(record.envelope.id),
            Status::Parked => facts.parked.push(record.waits_behind),
            Status::Completed | Status::Skipped | Status::Cancelled => {}
        }
    }
    let mut faults = Vec::new();
    for (id, facts) in &facts {
        let session = listed.iter().find(|s| (&s.endpoint, &s.tenant, &s.key) == (&id.0, &id.1, &id.2));
        faults.extend(session_fault(facts, session).map(|fault| format!("session {}: {fault}", id.2)));
    }
    let known =
        |s: &&SessionRecord| facts.contains_key(&(s.endpoint.clone(), s.tenant.clone(), s.key.clone()));
    faults.extend(listed.iter().filter(|s| !known(s)).map(|s| format!("session {} has no message", s.key)));
    faults
}

fn session_fault(facts: &SessionFacts, session: Option<&SessionRecord>) -> Option<String> {
    let holding = facts.in_flight.len() + facts.dead.len();
    if holding > 1 {
        return Some(format!("{holding} messages hold it"));
    }
    let head = facts.in_flight.first().copied();
    let head = head.or_else(|| facts.dead.first().map(|&id| (id, Status::DeadLettered)));
    let Some((head, status)) = head else {
        let waits = !facts.parked.is_empty() || session.is_some();
        return waits.then(|| format!("{} wait behind nothing", facts.parked.len()));
    };
    if facts.parked.iter().any(|behind| *behind != Some(head)) {
        return Some("a parked message names another head".into());
    }
    let expected = Some((head, status, facts.parked.len() as u64));
    let found = session.map(|session| (session.head, session.head_status, session.parked));
    (found != expected).then(|| format!("listed as {found:?}, found {expected:?}"))
}
