//! Clocks that were corrected: nothing breaks, nothing runs twice.

use super::Fixture;
use super::verbs::{claim, done, ids, order};
use mailslot_core::store::{Extended, Filter, Recovered, RetentionPolicy, Settled};
use mailslot_core::{Status, StoreErrorKind};
use std::time::Duration;

cases![
    a_clock_moved_back_keeps_acceptance_order,
    a_clock_moved_back_keeps_leases,
    a_clock_moved_back_lets_what_was_due_wait_for_it,
    a_clock_moved_back_deletes_nothing,
    a_clock_far_ahead_breaks_nothing,
];

const HOUR: i64 = 3_600;

async fn a_clock_moved_back_keeps_acceptance_order(fx: &Fixture) {
    let first = fx.accept(order()).await.id;
    fx.advance(-HOUR);
    let second = fx.accept(order()).await;
    assert_eq!(second.accepted_at, fx.now());
    assert_eq!(fx.find(Filter::default()).await, [first, second.id]);
}

async fn a_clock_moved_back_keeps_leases(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(-HOUR);
    assert_eq!(fx.recover().await, Recovered::default());
    assert_eq!(fx.lease(10).await, []);
    let held = Extended::Held { until: fx.after(60), cancel_requested: vec![] };
    assert_eq!(fx.extend([leased.lease]).await, [held]);
    assert_eq!(fx.complete(&leased).await, Settled::Applied(Status::Completed));
    assert_eq!(fx.record(leased.envelope.id).await.ended_at, Some(fx.now()));
}

async fn a_clock_moved_back_lets_what_was_due_wait_for_it(fx: &Fixture) {
    let first = fx.accept(order()).await;
    fx.advance(-HOUR);
    let exchanged = fx.claim(claim("order")).await;
    assert_eq!((exchanged.leased, exchanged.next_due), (vec![], Some(first.accepted_at)));
    let second = fx.accept(order()).await.id;
    assert_eq!(ids(&fx.lease(10).await), [second]);
    fx.advance(HOUR);
    assert_eq!(ids(&fx.lease(10).await), [first.id]);
}

async fn a_clock_moved_back_deletes_nothing(fx: &Fixture) {
    fx.place(order(), Status::Completed).await;
    fx.advance(-HOUR);
    let policy = RetentionPolicy { completed: Some(Duration::ZERO), ..RetentionPolicy::default() };
    assert_eq!(done(fx.store.retain(None, &policy, 10).await), 0);
}

async fn a_clock_far_ahead_breaks_nothing(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(200 * 365 * 24 * HOUR);
    fx.accept(order()).await;
    assert_eq!(fx.recover().await.returned, 1);
    assert_eq!(fx.lease(10).await.len(), 2);
    assert_eq!(fx.complete(&leased).await, Settled::LeaseLost);
    let long = claim("order").lasting(Duration::MAX).request(&fx.owner);
    let exchange = mailslot_core::store::Exchange { lease: Some(long), settlements: vec![] };
    let error = fx.store.exchange(exchange).await.expect_err("out of bounds");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
}
