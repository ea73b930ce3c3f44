//! Extending leases: the worker's heartbeat.

use super::Fixture;
use super::verbs::{LEASE, claim, done, order, owner};
use mailslot_core::limits::{LEASE_MAX, LEASE_MIN};
use mailslot_core::store::{ExtendRequest, Extended, Recovered};
use mailslot_core::{LeaseToken, Status, StoreErrorKind};
use std::time::Duration;

cases![
    an_extension_moves_the_end,
    an_extension_counts_from_now,
    an_extended_lease_is_not_recovered_at_its_first_end,
    another_owner_cannot_extend,
    an_old_token_cannot_extend,
    a_lease_past_its_end_can_be_extended_until_it_is_recovered,
    a_recovered_lease_is_lost,
    a_settled_lease_is_lost,
    a_partly_settled_lease_is_held,
    each_lease_gets_its_own_answer_in_order,
    an_extension_of_nothing_answers_with_nothing,
    extensions_out_of_bounds_are_refused,
];

fn held(fx: &Fixture) -> Extended {
    let until = fx.after(i64::try_from(LEASE.as_secs()).expect("short"));
    Extended::Held { until, cancel_requested: Vec::new() }
}

async fn an_extension_moves_the_end(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(50);
    assert_eq!(fx.extend([leased.lease]).await, [held(fx)]);
    assert_eq!(fx.record(leased.envelope.id).await.leased_until, Some(fx.after(60)));
}

async fn an_extension_counts_from_now(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.claim(claim("order").lasting(LEASE * 60)).await.leased;
    // Shorter than what is left: the worker's wish counts.
    assert_eq!(fx.extend([leased[0].lease]).await, [held(fx)]);
}

async fn an_extended_lease_is_not_recovered_at_its_first_end(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(50);
    fx.extend([leased.lease]).await;
    fx.advance(50);
    assert_eq!(fx.recover().await, Recovered::default());
    fx.advance(10);
    assert_eq!(fx.recover().await.returned, 1);
}

async fn another_owner_cannot_extend(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(10);
    let stolen = LeaseToken { owner: owner("worker").session(), ..leased.lease };
    assert_eq!(fx.extend([stolen]).await, [Extended::Lost]);
    assert_eq!(fx.record(leased.envelope.id).await.leased_until, Some(fx.after(50)));
}

async fn an_old_token_cannot_extend(fx: &Fixture) {
    fx.accept(order()).await;
    let old = fx.lease_one().await;
    fx.release(&old).await;
    let new = fx.lease_one().await;
    fx.advance(10);
    assert_eq!(fx.extend([old.lease]).await, [Extended::Lost]);
    assert_eq!(fx.record(new.envelope.id).await.leased_until, Some(fx.after(50)));
}

async fn a_lease_past_its_end_can_be_extended_until_it_is_recovered(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(3_600);
    assert_eq!(fx.extend([leased.lease]).await, [held(fx)]);
    assert_eq!(fx.recover().await, Recovered::default());
}

async fn a_recovered_lease_is_lost(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(61);
    fx.recover().await;
    assert_eq!(fx.extend([leased.lease]).await, [Extended::Lost]);
    assert_eq!(fx.status(leased.envelope.id).await, Status::Pending);
}

async fn a_settled_lease_is_lost(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.complete(&leased).await;
    assert_eq!(fx.extend([leased.lease]).await, [Extended::Lost]);
}

async fn a_partly_settled_lease_is_held(fx: &Fixture) {
    fx.accept_all((0..2).map(|_| order())).await;
    let leased = fx.lease(2).await;
    fx.complete(&leased[0]).await;
    assert_eq!(fx.extend([leased[0].lease]).await, [held(fx)]);
}

async fn each_lease_gets_its_own_answer_in_order(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    let first = fx.lease_one().await;
    let second = fx.lease_one().await;
    let third = fx.lease_one().await;
    fx.complete(&second).await;
    let answers = fx.extend([third.lease, second.lease, first.lease, third.lease]).await;
    assert_eq!(answers, [held(fx), Extended::Lost, held(fx), held(fx)]);
}

async fn an_extension_of_nothing_answers_with_nothing(fx: &Fixture) {
    assert_eq!(fx.extend([]).await, []);
}

async fn extensions_out_of_bounds_are_refused(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    for duration in [Duration::ZERO, LEASE_MIN / 2, LEASE_MAX * 2] {
        let request = ExtendRequest { leases: vec![leased.lease], duration };
        let error = fx.store.extend(request).await.expect_err("out of bounds");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
    }
    let request = ExtendRequest { leases: vec![leased.lease], duration: LEASE_MAX };
    assert!(matches!(done(fx.store.extend(request).await)[0], Extended::Held { .. }));
}
