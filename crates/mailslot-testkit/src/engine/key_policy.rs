//! For how long a key deduplicates while its message goes through a worker.

use super::bench::{Bench, Worker, fine, start};
use super::script::{Runs, order, scripted};
use mailslot_core::store::{Filter, RetentionPolicy};
use mailslot_core::{KeyPolicy, Verdict};
use std::time::Duration;

cases![
    a_retained_key_holds_until_retention_removes_its_message,
    a_key_until_finished_is_free_when_its_message_has_ended,
    a_key_until_finished_is_pinned_by_a_dead_letter,
    a_key_until_started_is_free_when_its_message_runs,
];

fn working(b: &Bench) -> (Worker, Runs) {
    let (handler, runs) = scripted();
    (start(b.builder().handler(handler)), runs)
}

/// Whether an accept with the key stores a new message.
async fn is_new(worker: &Worker, policy: KeyPolicy) -> bool {
    fine(worker.accept(&order(1)).idempotency_key("k").key_policy(policy).await).is_new()
}

async fn a_retained_key_holds_until_retention_removes_its_message(b: &Bench) {
    let (worker, mut runs) = working(b);
    assert!(is_new(&worker, KeyPolicy::Retained).await);
    runs.next().await.complete();
    worker.until(|stats| stats.completed == 1).await;
    assert!(!is_new(&worker, KeyPolicy::Retained).await);
    b.advance(61);
    worker.set_retention(RetentionPolicy {
        completed: Some(Duration::from_secs(60)),
        ..RetentionPolicy::keep_all()
    });
    worker.until(|stats| stats.deleted == 1).await;
    assert!(is_new(&worker, KeyPolicy::Retained).await);
    runs.next().await.complete();
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
}

async fn a_key_until_finished_is_free_when_its_message_has_ended(b: &Bench) {
    let (worker, mut runs) = working(b);
    assert!(is_new(&worker, KeyPolicy::UntilFinished).await);
    let run = runs.next().await;
    assert!(!is_new(&worker, KeyPolicy::UntilFinished).await, "it runs");
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    assert!(is_new(&worker, KeyPolicy::UntilFinished).await);
    runs.next().await.complete();
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
}

async fn a_key_until_finished_is_pinned_by_a_dead_letter(b: &Bench) {
    let (worker, mut runs) = working(b);
    assert!(is_new(&worker, KeyPolicy::UntilFinished).await);
    let run = runs.next().await;
    let id = run.id();
    run.end(Verdict::dead_letter("broken"));
    worker.until(|stats| stats.dead_lettered == 1).await;
    assert!(!is_new(&worker, KeyPolicy::UntilFinished).await);
    fine(worker.operator().skip(&Filter::of_ids([id])).await);
    assert!(is_new(&worker, KeyPolicy::UntilFinished).await);
    runs.next().await.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_key_until_started_is_free_when_its_message_runs(b: &Bench) {
    let (worker, mut runs) = working(b);
    worker.runs().await;
    fine(worker.control().pause().await);
    assert!(is_new(&worker, KeyPolicy::UntilStarted).await);
    assert!(!is_new(&worker, KeyPolicy::UntilStarted).await, "it waits");
    worker.control().resume();
    let first = runs.next().await;
    assert!(is_new(&worker, KeyPolicy::UntilStarted).await, "it runs");
    let second = runs.next().await;
    assert_ne!(first.id(), second.id());
    first.complete();
    second.complete();
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
}
