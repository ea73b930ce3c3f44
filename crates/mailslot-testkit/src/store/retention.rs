//! Retention: what ended long enough ago goes, with its history and its keys; nothing else does.

use super::Fixture;
use super::verbs::{done, endpoint, order};
use crate::message::message;
use mailslot_core::store::{Filter, RetentionPolicy};
use mailslot_core::{MessageId, Status};
use std::time::Duration;

cases![
    nothing_that_has_not_ended_is_ever_deleted,
    each_end_is_kept_for_its_own_time,
    a_message_is_kept_for_exactly_its_time,
    time_counts_from_the_end_not_from_the_accept,
    dead_letters_are_kept_by_default,
    a_policy_that_keeps_all_deletes_nothing,
    retention_can_be_of_one_endpoint,
    retention_deletes_at_most_its_limit_at_a_time,
    retention_frees_keys_and_ids,
    retention_frees_no_key_that_another_message_took,
    retention_of_a_dead_head_lets_its_session_go_on,
];

const DAY: u64 = 24 * 3_600;

fn days(days: u64) -> Duration {
    Duration::from_secs(days * DAY)
}

fn keep_nothing() -> RetentionPolicy {
    let none = Some(Duration::ZERO);
    RetentionPolicy { completed: none, skipped: none, cancelled: none, dead_lettered: none }
}

fn advance_days(fx: &Fixture, days: u64) {
    fx.advance(i64::try_from(days * DAY).expect("a short time"));
}

async fn retain(fx: &Fixture, policy: &RetentionPolicy) -> u64 {
    done(fx.store.retain(None, policy, 1_000).await)
}

async fn nothing_that_has_not_ended_is_ever_deleted(fx: &Fixture) {
    let mut kept = Vec::new();
    for &status in Status::ALL {
        let placed = fx.place(message(&format!("order-{status}")), status).await;
        if !status.is_terminal() {
            kept.push(placed.id);
        }
    }
    fx.advance(1_000);
    assert_eq!(retain(fx, &keep_nothing()).await, 4);
    let orders = fx.find(Filter::default()).await;
    assert!(kept.iter().all(|id| orders.contains(id)));
    assert_eq!(retain(fx, &keep_nothing()).await, 0);
}

async fn each_end_is_kept_for_its_own_time(fx: &Fixture) {
    let policy = RetentionPolicy {
        completed: Some(days(1)),
        skipped: Some(days(2)),
        cancelled: Some(days(3)),
        dead_lettered: Some(days(4)),
    };
    let ends = [Status::Completed, Status::Skipped, Status::Cancelled, Status::DeadLettered];
    let mut placed = Vec::new();
    for end in ends {
        placed.push(fx.place(order(), end).await.id);
    }
    fx.advance(1);
    for id in placed {
        assert_eq!(retain(fx, &policy).await, 0);
        advance_days(fx, 1);
        assert_eq!(retain(fx, &policy).await, 1);
        assert!(fx.is_gone(id).await);
    }
}

async fn a_message_is_kept_for_exactly_its_time(fx: &Fixture) {
    fx.place(order(), Status::Completed).await;
    let policy = RetentionPolicy { completed: Some(days(1)), ..RetentionPolicy::keep_all() };
    advance_days(fx, 1);
    assert_eq!(retain(fx, &policy).await, 0);
    fx.advance(1);
    assert_eq!(retain(fx, &policy).await, 1);
}

async fn time_counts_from_the_end_not_from_the_accept(fx: &Fixture) {
    fx.accept(order()).await;
    advance_days(fx, 30);
    fx.complete(&fx.lease_one().await).await;
    fx.advance(1);
    assert_eq!(retain(fx, &RetentionPolicy::default()).await, 0);
    advance_days(fx, 7);
    assert_eq!(retain(fx, &RetentionPolicy::default()).await, 1);
}

async fn dead_letters_are_kept_by_default(fx: &Fixture) {
    let dead = fx.place(order().key("k"), Status::DeadLettered).await.id;
    advance_days(fx, 3_650);
    assert_eq!(retain(fx, &RetentionPolicy::default()).await, 0);
    assert_eq!(fx.accept(order().key("k")).await.id, dead);
}

async fn a_policy_that_keeps_all_deletes_nothing(fx: &Fixture) {
    for end in [Status::Completed, Status::Skipped, Status::Cancelled, Status::DeadLettered] {
        fx.place(order(), end).await;
    }
    advance_days(fx, 3_650);
    assert_eq!(retain(fx, &RetentionPolicy::keep_all()).await, 0);
}

async fn retention_can_be_of_one_endpoint(fx: &Fixture) {
    let kept = fx.place(order(), Status::Completed).await.id;
    fx.place(order().endpoint("billing"), Status::Completed).await;
    fx.advance(10);
    assert_eq!(done(fx.store.retain(Some(&endpoint("billing")), &keep_nothing(), 10).await), 1);
    assert_eq!(done(fx.store.retain(Some(&endpoint("nowhere")), &keep_nothing(), 10).await), 0);
    assert_eq!(fx.find(Filter::default()).await, [kept]);
}

async fn retention_deletes_at_most_its_limit_at_a_time(fx: &Fixture) {
    fx.accept_all((0..5).map(|_| order())).await;
    for leased in fx.lease(5).await {
        fx.complete(&leased).await;
    }
    fx.advance(10);
    assert_eq!(done(fx.store.retain(None, &keep_nothing(), 2).await), 2);
    assert_eq!(fx.find(Filter::default()).await.len(), 3);
    assert_eq!(done(fx.store.retain(None, &keep_nothing(), 100).await), 3);
}

async fn retention_frees_keys_and_ids(fx: &Fixture) {
    let id = MessageId::generate();
    fx.place(order().key("k").id(id), Status::Completed).await;
    fx.advance(10);
    assert!(!fx.accept(order().key("k")).await.is_new());
    retain(fx, &keep_nothing()).await;
    assert!(fx.is_gone(id).await);
    assert!(fx.accept(order().key("k").payload("other")).await.is_new());
    assert!(fx.accept(order().id(id).payload("other")).await.is_new());
}

async fn retention_frees_no_key_that_another_message_took(fx: &Fixture) {
    let until_finished = || order().key("k").policy(mailslot_core::KeyPolicy::UntilFinished);
    fx.place(until_finished(), Status::Completed).await;
    fx.advance(10);
    let second = fx.accept(until_finished().payload("second")).await.id;
    assert_eq!(retain(fx, &keep_nothing()).await, 1);
    assert_eq!(fx.accept(until_finished().payload("second")).await.id, second);
}

async fn retention_of_a_dead_head_lets_its_session_go_on(fx: &Fixture) {
    fx.place(order().session("s"), Status::DeadLettered).await;
    let parked = fx.accept(order().session("s")).await.id;
    fx.advance(10);
    assert_eq!(retain(fx, &keep_nothing()).await, 1);
    assert_eq!(fx.lease_one().await.envelope.id, parked);
}
