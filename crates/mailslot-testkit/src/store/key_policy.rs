//! For how long a key deduplicates: retained, until finished, until started.

use super::Fixture;
use super::verbs::{done, order};
use crate::message::{MessageBuilder, message};
use mailslot_core::store::{Change, HandoffResult};
use mailslot_core::{ErrorText, KeyPolicy, MessageId, Status};

cases![
    a_retained_key_outlives_every_state,
    an_until_finished_key_is_free_after_every_good_end,
    an_until_finished_key_is_pinned_by_a_dead_letter,
    an_until_finished_key_stays_taken_through_a_retry,
    skipping_a_dead_letter_frees_an_until_finished_key,
    completing_a_handoff_frees_an_until_finished_key,
    failing_a_handoff_keeps_an_until_finished_key,
    a_cancel_that_takes_frees_an_until_finished_key,
    an_until_started_key_is_free_from_the_first_lease_on,
    an_until_started_key_is_held_while_parked_or_pending,
    an_until_started_key_stays_free_after_a_release,
    a_requeue_takes_no_freed_key_back,
    the_end_of_a_message_frees_only_its_own_key,
    a_second_lease_frees_only_its_own_key,
    the_policy_is_that_of_the_first_accept,
    a_freed_key_does_not_free_the_supplied_id,
];

fn keyed(status: Status, policy: KeyPolicy) -> MessageBuilder {
    let session = format!("session-{status}");
    message(&format!("order-{status}")).key(&format!("key-{status}")).policy(policy).session(&session)
}

/// Places a message in each state and looks whether its key is free for other content.
async fn check_free_in(fx: &Fixture, policy: KeyPolicy, free: &[Status]) {
    for &status in Status::ALL {
        let first = keyed(status, policy);
        fx.place(first.clone(), status).await;
        let stored = fx.offer(first.payload("other")).await.receipt().is_some();
        assert_eq!(stored, free.contains(&status), "whether the key is free while {status}");
    }
}

async fn is_key_free(fx: &Fixture) -> bool {
    fx.offer(order().key("k").payload(MessageId::generate().to_string())).await.receipt().is_some()
}

fn until_finished() -> MessageBuilder {
    order().key("k").policy(KeyPolicy::UntilFinished)
}

fn until_started() -> MessageBuilder {
    order().key("k").policy(KeyPolicy::UntilStarted)
}

async fn a_retained_key_outlives_every_state(fx: &Fixture) {
    check_free_in(fx, KeyPolicy::Retained, &[]).await;
}

async fn an_until_finished_key_is_free_after_every_good_end(fx: &Fixture) {
    let good_ends = [Status::Completed, Status::Skipped, Status::Cancelled];
    check_free_in(fx, KeyPolicy::UntilFinished, &good_ends).await;
}

async fn an_until_finished_key_is_pinned_by_a_dead_letter(fx: &Fixture) {
    let dead = fx.place(until_finished(), Status::DeadLettered).await;
    assert!(!is_key_free(fx).await);
    fx.change(Change::Requeue, [dead.id]).await;
    assert!(!is_key_free(fx).await);
    fx.complete(&fx.lease_one().await).await;
    assert!(is_key_free(fx).await);
}

async fn an_until_finished_key_stays_taken_through_a_retry(fx: &Fixture) {
    fx.accept(until_finished()).await;
    fx.retry(&fx.lease_one().await, 0).await;
    assert!(!is_key_free(fx).await);
    fx.release(&fx.lease_one().await).await;
    assert!(!is_key_free(fx).await);
}

async fn skipping_a_dead_letter_frees_an_until_finished_key(fx: &Fixture) {
    let dead = fx.place(until_finished(), Status::DeadLettered).await;
    assert_eq!(fx.change(Change::Skip, [dead.id]).await, 1);
    assert!(is_key_free(fx).await);
}

async fn completing_a_handoff_frees_an_until_finished_key(fx: &Fixture) {
    let suspended = fx.place(until_finished(), Status::Suspended).await;
    assert!(done(fx.store.settle_handoff(suspended.id, HandoffResult::Completed).await));
    assert!(is_key_free(fx).await);
}

async fn failing_a_handoff_keeps_an_until_finished_key(fx: &Fixture) {
    let suspended = fx.place(until_finished(), Status::Suspended).await;
    let failed = HandoffResult::Failed(ErrorText::new("refused"));
    assert!(done(fx.store.settle_handoff(suspended.id, failed).await));
    assert!(!is_key_free(fx).await);
}

async fn a_cancel_that_takes_frees_an_until_finished_key(fx: &Fixture) {
    fx.accept(until_finished()).await;
    let leased = fx.lease_one().await;
    fx.change(Change::Cancel, [leased.envelope.id]).await;
    assert!(!is_key_free(fx).await);
    fx.release(&leased).await;
    assert!(is_key_free(fx).await);
}

async fn an_until_started_key_is_free_from_the_first_lease_on(fx: &Fixture) {
    use Status::{Completed, DeadLettered, Leased, Skipped, Suspended};
    check_free_in(fx, KeyPolicy::UntilStarted, &[Leased, Suspended, Completed, Skipped, DeadLettered]).await;
}

async fn an_until_started_key_is_held_while_parked_or_pending(fx: &Fixture) {
    let [head, parked] = [until_started().key("head"), until_started()].map(|m| m.session("s"));
    fx.accept_all([head, parked.policy(KeyPolicy::UntilStarted)]).await;
    assert!(!is_key_free(fx).await);
    fx.complete(&fx.lease_one().await).await;
    assert!(!is_key_free(fx).await);
    fx.lease_one().await;
    assert!(is_key_free(fx).await);
}

async fn an_until_started_key_stays_free_after_a_release(fx: &Fixture) {
    fx.accept(until_started()).await;
    fx.release(&fx.lease_one().await).await;
    assert!(is_key_free(fx).await);
}

async fn a_requeue_takes_no_freed_key_back(fx: &Fixture) {
    let dead = fx.place(until_started(), Status::DeadLettered).await;
    let second = fx.accept(until_started().payload("second").due_in(60)).await;
    fx.change(Change::Requeue, [dead.id]).await;
    assert_eq!(fx.accept(until_started().payload("second")).await.id, second.id);
}

async fn the_end_of_a_message_frees_only_its_own_key(fx: &Fixture) {
    fx.accept(until_started()).await;
    let first = fx.lease_one().await;
    let second = fx.accept(order().key("k").policy(KeyPolicy::UntilFinished).due_in(60)).await;
    fx.complete(&first).await;
    assert_eq!(fx.accept(order().key("k")).await.id, second.id);
    fx.change(Change::Purge, [first.envelope.id]).await;
    assert_eq!(fx.accept(order().key("k")).await.id, second.id);
}

async fn a_second_lease_frees_only_its_own_key(fx: &Fixture) {
    let first = fx.accept(until_started()).await.id;
    let leased = fx.lease_one().await;
    let second = fx.accept(until_started().due_in(60)).await.id;
    fx.retry(&leased, 0).await;
    assert_eq!(fx.lease_one().await.envelope.id, first);
    assert_eq!(fx.accept(order().key("k")).await.id, second);
}

async fn the_policy_is_that_of_the_first_accept(fx: &Fixture) {
    fx.accept(order().key("k")).await;
    assert!(!fx.accept(until_finished()).await.is_new());
    fx.complete(&fx.lease_one().await).await;
    assert!(!is_key_free(fx).await);
}

async fn a_freed_key_does_not_free_the_supplied_id(fx: &Fixture) {
    let id = MessageId::generate();
    fx.place(until_finished().id(id), Status::Completed).await;
    assert!(is_key_free(fx).await);
    assert!(!fx.accept(order().id(id)).await.is_new());
}
