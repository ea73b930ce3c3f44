//! Roles that may only accept, or only work: the grants that the documentation prints are enough, and not more.

use crate::support::{Place, accept, message};
use mailslot_core::store::{Exchange, LaneRequest, LeaseRequest};
use mailslot_core::{
    Disposition, EndpointName, Idempotency, IdempotencyKey, InboxStore as _, KeyPolicy, OnConflict, Owner,
    SessionKey, Settlement, StoreError, StoreErrorKind,
};
use mailslot_store_postgres::PostgresStore;
use std::time::Duration;

const ACCEPT: &str = include_str!("../../grants/accept.sql");
const WORK: &str = include_str!("../../grants/work.sql");

/// A store as a role that was granted just this.
async fn as_role(place: &Place, role: &str, grants: &str) -> PostgresStore {
    drop(place.open().await.expect("a fresh schema can be made"));
    let name = format!("{role}_{}", place.schema);
    let grants =
        grants.replace(role, &name).replace("SCHEMA mailslot TO", &format!("SCHEMA {} TO", place.schema));
    place.run(&format!("CREATE ROLE {name} LOGIN; {grants}")).await;
    let url = place.url.replacen("postgres@", &format!("{name}@"), 1);
    let theirs = Place { url, schema: place.schema.clone() };
    theirs.open().await.expect("the role can open what is there")
}

fn lease() -> LeaseRequest {
    LeaseRequest {
        owner: Owner::new("role").expect("the label is right"),
        lanes: vec![LaneRequest {
            endpoint: EndpointName::default(),
            contract: message().contract,
            attempts_max: 3,
        }],
        limit: 10,
        duration: Duration::from_secs(30),
        tenant: None,
        due_until: None,
    }
}

async fn claim_and_settle(store: &PostgresStore, disposition: Disposition) -> Result<usize, StoreError> {
    let claimed = store.exchange(Exchange { settlements: vec![], lease: Some(lease()) }).await?;
    let settlements = claimed.leased.iter().map(|leased| Settlement {
        lease: leased.lease,
        seq: leased.envelope.seq,
        attempt: leased.attempt,
        disposition: disposition.clone(),
        error: None,
    });
    let settled = store.exchange(Exchange { settlements: settlements.collect(), lease: None }).await?;
    Ok(settled.settled.len())
}

#[tokio::test]
async fn a_role_that_may_only_accept_can_accept_everything_and_claim_nothing() {
    let place = Place::new();
    let store = as_role(&place, "mailslot_accept", ACCEPT).await;
    let key = Idempotency::Keyed {
        key: IdempotencyKey::new("once").expect("the key is right"),
        policy: KeyPolicy::default(),
        on_conflict: OnConflict::default(),
    };
    let mut keyed = message();
    keyed.metadata.idempotency = key;
    for expected in [true, false] {
        let appended = accept(&store, keyed.clone()).await.expect("it accepts");
        assert_eq!(appended.receipt().map(mailslot_core::Receipt::is_new), Some(expected));
    }
    let mut ordered = message();
    ordered.metadata.session = Some(SessionKey::new("s").expect("the key is right"));
    for _ in 0..2 {
        ordered.id = mailslot_core::MessageId::generate();
        accept(&store, ordered.clone()).await.expect("it accepts into a session");
    }
    let error = claim_and_settle(&store, Disposition::Complete).await.expect_err("it may not claim");
    assert_eq!(error.kind(), StoreErrorKind::NotWritable, "{error}");
    assert!(error.to_string().contains("role"), "{error}");
}

#[tokio::test]
async fn a_role_that_may_only_work_can_settle_everything_and_accept_nothing() {
    let place = Place::new();
    let owner = place.open().await.expect("a fresh schema can be made");
    let store = as_role(&place, "mailslot_work", WORK).await;
    let retry = Disposition::Retry { after: Duration::ZERO, reason: mailslot_core::Reason::Failed };
    let handoff = mailslot_core::Handoff::new("waits").expect("the reason is right");
    for disposition in [Disposition::Complete, retry, Disposition::Suspend(handoff), Disposition::Complete] {
        let mut ordered = message();
        ordered.metadata.session = Some(SessionKey::new("s").expect("the key is right"));
        for new in [message(), ordered] {
            accept(&owner, new).await.expect("the owner accepts");
        }
        let settled = claim_and_settle(&store, disposition).await.expect("it claims and settles");
        assert!(settled > 0);
    }
    store.recover(10).await.expect("it takes back what is over");
    let error = accept(&store, message()).await.expect_err("it may not accept");
    assert_eq!(error.kind(), StoreErrorKind::NotWritable, "{error}");
}
