//! Leasing: what may be taken, by whom, how much.

use super::Fixture;
use super::verbs::{LEASE, claim, done, ids, order, owner, settlement};
use crate::message::message;
use jiff::SignedDuration;
use mailslot_core::limits::{LEASE_BATCH_MAX, LEASE_MAX, LEASE_MIN};
use mailslot_core::store::Exchange;
use mailslot_core::{Attempt, Disposition, Status, StoreErrorKind};
use std::collections::HashSet;
use std::time::Duration;

cases![
    a_lease_names_its_attempt_owner_and_end,
    a_leased_message_is_not_leased_again,
    an_attempt_is_counted_when_leased,
    a_claim_takes_at_most_its_limit,
    a_claim_of_nothing_due_is_empty,
    a_claim_takes_only_its_contracts,
    each_version_of_a_contract_is_a_lane_of_its_own,
    a_claim_takes_only_its_endpoints,
    a_claim_serves_several_lanes,
    a_claim_without_lanes_takes_nothing,
    a_claim_can_be_restricted_to_a_tenant,
    each_claim_has_a_token_of_its_own,
    concurrent_claims_take_different_messages,
    an_exchange_settles_before_it_leases,
    an_empty_exchange_changes_nothing,
    claims_out_of_bounds_are_refused,
    a_refused_exchange_settles_nothing,
    leases_are_listed_by_their_end,
    a_lease_is_listed_until_its_last_message_is_settled,
];

async fn a_lease_names_its_attempt_owner_and_end(fx: &Fixture) {
    let accepted = fx.accept(order()).await;
    fx.advance(7);
    let exchanged = fx.claim(claim("order")).await;
    let until = fx.now().saturating_add(SignedDuration::try_from(LEASE).expect("short")).expect("in range");
    assert_eq!((exchanged.now, exchanged.until), (fx.now(), Some(until)));
    let leased = &exchanged.leased[0];
    assert_eq!(leased.envelope.id, accepted.id);
    assert_eq!(leased.attempt, Attempt { generation: 0, number: 1 });
    assert_eq!(leased.lease.owner, fx.owner.session());
    assert_eq!(leased.due_at, accepted.accepted_at);
    let record = fx.record(accepted.id).await;
    assert_eq!((record.status, record.attempt), (Status::Leased, leased.attempt));
    assert_eq!((record.leased_until, record.leased_by.as_deref()), (Some(until), Some("worker")));
    assert_eq!((record.due_at, record.ended_at, record.cancel_requested), (None, None, false));
}

async fn a_leased_message_is_not_leased_again(fx: &Fixture) {
    fx.accept(order()).await;
    assert_eq!(fx.lease(10).await.len(), 1);
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(fx.claim(claim("order").by(&owner("other"))).await.leased, []);
}

async fn an_attempt_is_counted_when_leased(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    assert_eq!(fx.record(id).await.attempt, Attempt::FIRST);
    for number in 1..=3 {
        let leased = fx.lease_one().await;
        assert_eq!(leased.attempt.number, number);
        assert_eq!(fx.record(id).await.attempt, leased.attempt);
        fx.retry(&leased, 0).await;
    }
}

async fn a_claim_takes_at_most_its_limit(fx: &Fixture) {
    let accepted = fx.accept_all((0..5).map(|_| order())).await;
    assert_eq!(ids(&fx.lease(2).await), accepted[..2]);
    assert_eq!(ids(&fx.lease(2).await), accepted[2..4]);
    assert_eq!(ids(&fx.lease(2).await), accepted[4..]);
}

async fn a_claim_of_nothing_due_is_empty(fx: &Fixture) {
    let exchanged = fx.claim(claim("order")).await;
    assert_eq!((exchanged.leased, exchanged.refused, exchanged.settled), (vec![], vec![], vec![]));
    assert_eq!((exchanged.now, exchanged.until, exchanged.next_due), (fx.now(), None, None));
    assert_eq!(done(fx.store.leases(10).await), []);
}

async fn a_claim_takes_only_its_contracts(fx: &Fixture) {
    let unknown = fx.accept(message("unknown")).await.id;
    let known = fx.accept(order()).await.id;
    assert_eq!(ids(&fx.lease(10).await), [known]);
    assert_eq!(fx.lease(10).await, []);
    let record = fx.record(unknown).await;
    assert_eq!((record.status, record.attempt), (Status::Pending, Attempt::FIRST));
    let counts = done(fx.store.counts().await);
    let unknown = counts.iter().find(|count| count.contract.name() == "unknown").expect("it is counted");
    assert_eq!((unknown.status, unknown.messages), (Status::Pending, 1));
}

async fn each_version_of_a_contract_is_a_lane_of_its_own(fx: &Fixture) {
    let accepted = fx.accept_all(["order@1", "order@2", "order@3"].map(message)).await;
    assert_eq!(ids(&fx.claim(claim("order@2")).await.leased), [accepted[1]]);
    assert_eq!(
        ids(&fx.claim(claim("order@1").lane("default", "order@3")).await.leased),
        [accepted[0], accepted[2]]
    );
}

async fn a_claim_takes_only_its_endpoints(fx: &Fixture) {
    let billing = fx.accept(order().endpoint("billing")).await.id;
    let shipping = fx.accept(order().endpoint("shipping")).await.id;
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(ids(&fx.claim(claim("order").at("shipping")).await.leased), [shipping]);
    assert_eq!(ids(&fx.claim(claim("order").at("billing")).await.leased), [billing]);
}

async fn a_claim_serves_several_lanes(fx: &Fixture) {
    let accepted = fx
        .accept_all([order(), message("invoice"), order().endpoint("billing"), message("other"), order()])
        .await;
    let lanes = claim("order").lane("default", "invoice").lane("billing", "order");
    let leased = fx.claim(lanes).await.leased;
    assert_eq!(ids(&leased), [accepted[0], accepted[1], accepted[2], accepted[4]]);
    assert!(leased.iter().all(|one| one.lease == leased[0].lease), "one claim has one token");
}

async fn a_claim_without_lanes_takes_nothing(fx: &Fixture) {
    fx.accept(order()).await;
    let mut request = claim("order").request(&fx.owner);
    request.lanes.clear();
    let exchange = Exchange { lease: Some(request), ..Exchange::default() };
    let exchanged = done(fx.store.exchange(exchange).await);
    assert_eq!((exchanged.leased, exchanged.next_due), (vec![], None));
}

async fn a_claim_can_be_restricted_to_a_tenant(fx: &Fixture) {
    let accepted = fx.accept_all([order(), order().tenant("acme"), order().tenant("umbrella")]).await;
    assert_eq!(fx.claim(claim("order").of_tenant("nobody")).await.leased, []);
    assert_eq!(ids(&fx.claim(claim("order").of_tenant("umbrella").limit(1)).await.leased), [accepted[2]]);
    assert_eq!(ids(&fx.lease(10).await), [accepted[0], accepted[1]]);
}

async fn each_claim_has_a_token_of_its_own(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    let first = fx.lease_one().await.lease;
    let second = fx.lease_one().await;
    fx.complete(&second).await;
    let third = fx.lease_one().await.lease;
    assert!(first.generation < second.lease.generation && second.lease.generation < third.generation);
    assert_eq!(first.owner, third.owner);
}

async fn concurrent_claims_take_different_messages(fx: &Fixture) {
    let accepted = fx.accept_all((0..40).map(|_| order())).await;
    let claiming: Vec<_> = (0..10)
        .map(|n| {
            let store = std::sync::Arc::clone(&fx.store);
            let request = claim("order").limit(4).request(&owner(&format!("worker {n}")));
            let exchange = Exchange { lease: Some(request), ..Exchange::default() };
            tokio::spawn(async move { store.exchange(exchange).await })
        })
        .collect();
    let mut taken = HashSet::new();
    let mut generations = HashSet::new();
    for claimed in claiming {
        let leased = done(claimed.await.expect("a claim does not panic")).leased;
        assert_eq!(leased.len(), 4);
        generations.insert(leased[0].lease.generation);
        taken.extend(ids(&leased));
    }
    assert_eq!(taken, accepted.into_iter().collect());
    assert_eq!(generations.len(), 10);
}

async fn an_exchange_settles_before_it_leases(fx: &Fixture) {
    let accepted = fx.accept_all((0..2).map(|_| order().session("s"))).await;
    let head = fx.lease_one().await;
    let exchanged = fx.exchange(vec![settlement(&head, Disposition::Complete)], Some(claim("order"))).await;
    assert_eq!(ids(&exchanged.leased), [accepted[1]]);
    let again =
        fx.exchange(vec![settlement(&exchanged.leased[0], Disposition::Release)], Some(claim("order"))).await;
    assert_eq!(ids(&again.leased), [accepted[1]]);
    assert_ne!(again.leased[0].lease, exchanged.leased[0].lease);
}

async fn an_empty_exchange_changes_nothing(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let before = fx.detail(id).await;
    let exchanged = fx.exchange(Vec::new(), None).await;
    assert_eq!((exchanged.settled, exchanged.leased, exchanged.until), (vec![], vec![], None));
    assert_eq!(exchanged.now, fx.now());
    assert_eq!(fx.detail(id).await, before);
}

async fn claims_out_of_bounds_are_refused(fx: &Fixture) {
    fx.accept(order()).await;
    let bad = [
        claim("order").limit(0),
        claim("order").limit(LEASE_BATCH_MAX + 1),
        claim("order").lasting(Duration::ZERO),
        claim("order").lasting(LEASE_MIN / 2),
        claim("order").lasting(LEASE_MAX + Duration::from_secs(1)),
        claim("order").lane("default", "order"),
    ];
    for claim in bad {
        let lease = Some(claim.clone().request(&fx.owner));
        let error = fx.store.exchange(Exchange { lease, ..Exchange::default() }).await;
        assert_eq!(error.expect_err("out of bounds").kind(), StoreErrorKind::Invalid, "{claim:?}");
    }
    assert_eq!(fx.claim(claim("order").lasting(LEASE_MIN).limit(LEASE_BATCH_MAX)).await.leased.len(), 1);
}

async fn a_refused_exchange_settles_nothing(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    let lease = Some(claim("order").limit(0).request(&fx.owner));
    let settlements = vec![settlement(&leased, Disposition::Complete)];
    assert!(fx.store.exchange(Exchange { settlements, lease }).await.is_err());
    let settlements = vec![settlement(&leased, Disposition::Complete); 1_001];
    assert!(fx.store.exchange(Exchange { settlements, lease: None }).await.is_err());
    assert_eq!(fx.status(leased.envelope.id).await, Status::Leased);
}

async fn leases_are_listed_by_their_end(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    let late = fx.claim(claim("order").limit(2).lasting(LEASE * 2)).await;
    let soon = fx.claim(claim("order").by(&owner("quick"))).await;
    let listed = done(fx.store.leases(10).await);
    let seen: Vec<_> =
        listed.iter().map(|lease| (lease.label.as_str(), Some(lease.until), lease.messages)).collect();
    assert_eq!(seen, [("quick", soon.until, 1), ("worker", late.until, 2)]);
    assert_eq!(listed[1].owner, fx.owner.session());
    assert_eq!(listed[0].generation, soon.leased[0].lease.generation);
    assert_eq!(done(fx.store.leases(1).await), listed[..1]);
}

async fn a_lease_is_listed_until_its_last_message_is_settled(fx: &Fixture) {
    fx.accept_all((0..2).map(|_| order())).await;
    let leased = fx.lease(2).await;
    fx.complete(&leased[0]).await;
    assert_eq!(done(fx.store.leases(10).await)[0].messages, 1);
    fx.retry(&leased[1], 60).await;
    assert_eq!(done(fx.store.leases(10).await), []);
}
