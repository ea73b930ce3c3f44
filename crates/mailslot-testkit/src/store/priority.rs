//! Priorities: the higher class goes first, the lower one is delayed and never starved.

use super::Fixture;
use super::verbs::{claim, ids, order};
use crate::message::message;
use mailslot_core::Priority::{High, Low, Normal};
use mailslot_core::limits::PRIORITY_STEP;

cases![
    a_higher_class_goes_first,
    within_a_class_the_order_is_that_of_due_times,
    a_low_message_gets_its_turn_after_two_steps,
    a_normal_message_gets_its_turn_after_one_step,
    at_one_step_apart_the_first_accepted_goes_first,
    a_scheduled_high_message_does_not_go_early,
    classes_are_merged_across_lanes,
    a_retry_ages_from_its_new_due_time,
];

fn step() -> i64 {
    i64::try_from(PRIORITY_STEP.as_secs()).expect("short")
}

async fn a_higher_class_goes_first(fx: &Fixture) {
    let accepted =
        fx.accept_all([Low, Normal, High, Low, High, Normal].map(|class| order().priority(class))).await;
    let expected = [2, 4, 1, 5, 0, 3].map(|n: usize| accepted[n]);
    assert_eq!(ids(&fx.lease(3).await), expected[..3]);
    assert_eq!(ids(&fx.lease(3).await), expected[3..]);
}

async fn within_a_class_the_order_is_that_of_due_times(fx: &Fixture) {
    let accepted = fx.accept_all([3, 1, 2].map(|delay| order().priority(High).due_in(delay))).await;
    fx.advance(10);
    assert_eq!(ids(&fx.lease(10).await), [accepted[1], accepted[2], accepted[0]]);
}

/// Accepts a message of the lower class, and one of the higher class `later` seconds after it. Which goes first?
async fn lower_goes_first(fx: &Fixture, lower: mailslot_core::Priority, later: i64) -> bool {
    let low = fx.accept(order().priority(lower)).await.id;
    fx.advance(later);
    fx.accept(order().priority(High)).await;
    let first = ids(&fx.lease(2).await)[0];
    first == low
}

async fn a_low_message_gets_its_turn_after_two_steps(fx: &Fixture) {
    assert!(!lower_goes_first(fx, Low, 2 * step() - 1).await);
    assert!(lower_goes_first(fx, Low, 2 * step() + 1).await);
}

async fn a_normal_message_gets_its_turn_after_one_step(fx: &Fixture) {
    assert!(!lower_goes_first(fx, Normal, step() - 1).await);
    assert!(lower_goes_first(fx, Normal, step() + 1).await);
}

async fn at_one_step_apart_the_first_accepted_goes_first(fx: &Fixture) {
    assert!(lower_goes_first(fx, Low, 2 * step()).await);
    assert!(lower_goes_first(fx, Normal, step()).await);
}

async fn a_scheduled_high_message_does_not_go_early(fx: &Fixture) {
    let low = fx.accept(order().priority(Low)).await.id;
    fx.accept(order().priority(High).due_in(5)).await;
    assert_eq!(ids(&fx.lease(10).await), [low]);
}

async fn classes_are_merged_across_lanes(fx: &Fixture) {
    let accepted = fx
        .accept_all([
            order().priority(Low),
            message("invoice").priority(High),
            order(),
            message("invoice"),
            order().priority(High),
        ])
        .await;
    let both = claim("order").lane("default", "invoice");
    let expected = [1, 4, 2, 3, 0].map(|n: usize| accepted[n]);
    assert_eq!(ids(&fx.claim(both.clone().limit(2)).await.leased), expected[..2]);
    assert_eq!(ids(&fx.claim(both).await.leased), expected[2..]);
}

async fn a_retry_ages_from_its_new_due_time(fx: &Fixture) {
    let normal = fx.accept(order()).await.id;
    let leased = fx.lease_one().await;
    fx.advance(step() + 1);
    fx.retry(&leased, 0).await;
    let high = fx.accept(order().priority(High)).await.id;
    assert_eq!(ids(&fx.lease(2).await), [high, normal]);
}
