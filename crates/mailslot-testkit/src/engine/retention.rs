//! Retention, done by the workers.

use super::bench::{Bench, fine, start};
use super::script::{self, Order, order};
use super::tap::Call;
use mailslot_core::store::RetentionPolicy;
use mailslot_core::{MessageId, Verdict};
use mailslot_engine::{Inbox, MaintenanceConfig};
use std::time::Duration;

cases![
    what_ended_is_deleted_after_its_time,
    each_end_has_a_time_of_its_own,
    retention_can_be_changed_while_the_worker_runs,
    more_than_one_pass_can_hold_is_deleted_in_one_round,
];

/// Ends as the note of the order says.
async fn as_noted(order: Order) -> Verdict {
    match order.note.as_str() {
        "skip" => Verdict::skip("so"),
        "dead" => Verdict::dead_letter("so"),
        _ => Verdict::complete(),
    }
}

async fn noted(inbox: &Inbox<super::tap::TapStore>, note: &str) -> MessageId {
    fine(inbox.accept(&script::noted(note)).await).id
}

fn keep_completed(seconds: u64) -> RetentionPolicy {
    RetentionPolicy { completed: Some(Duration::from_secs(seconds)), ..RetentionPolicy::keep_all() }
}

fn maintenance(retention: RetentionPolicy) -> MaintenanceConfig {
    MaintenanceConfig { retain_every: Duration::from_millis(20), retention, ..MaintenanceConfig::default() }
}

async fn what_ended_is_deleted_after_its_time(b: &Bench) {
    let worker = start(b.builder().handler(as_noted).maintenance(maintenance(keep_completed(60))));
    let id = noted(&worker, "complete").await;
    worker.until(|stats| stats.completed == 1).await;
    b.advance(59);
    b.tap.called_again(Call::Retain, 2).await;
    assert!(!b.is_gone(id).await);
    b.advance(2);
    worker.until(|stats| stats.deleted == 1).await;
    assert!(b.is_gone(id).await);
    worker.stop().await;
}

async fn each_end_has_a_time_of_its_own(b: &Bench) {
    let policy = RetentionPolicy { skipped: Some(Duration::from_secs(10)), ..keep_completed(20) };
    let worker = start(b.builder().handler(as_noted).maintenance(maintenance(policy)));
    let [completed, skipped, dead] =
        [noted(&worker, "complete").await, noted(&worker, "skip").await, noted(&worker, "dead").await];
    worker.until(|stats| stats.completed + stats.skipped + stats.dead_lettered == 3).await;
    b.advance(11);
    worker.until(|stats| stats.deleted == 1).await;
    assert!(b.is_gone(skipped).await && !b.is_gone(completed).await);
    b.advance(100_000_000);
    worker.until(|stats| stats.deleted == 2).await;
    b.tap.called_again(Call::Retain, 2).await;
    assert!(b.is_gone(completed).await && !b.is_gone(dead).await);
    worker.stop().await;
}

async fn retention_can_be_changed_while_the_worker_runs(b: &Bench) {
    let worker = start(b.builder().handler(as_noted));
    let id = noted(&worker, "complete").await;
    worker.until(|stats| stats.completed == 1).await;
    b.advance(1_000_000);
    b.tap.called_again(Call::Retain, 2).await;
    assert!(!b.is_gone(id).await);
    worker.set_retention(keep_completed(60));
    worker.until(|stats| stats.deleted == 1).await;
    assert!(b.is_gone(id).await);
    worker.stop().await;
}

async fn more_than_one_pass_can_hold_is_deleted_in_one_round(b: &Bench) {
    let worker = start(b.builder().handler(as_noted).maintenance(MaintenanceConfig {
        retain_every: Duration::from_secs(3600),
        ..maintenance(RetentionPolicy::keep_all())
    }));
    let prepared = |number| fine(worker.accept(&order(number)).prepare());
    fine(worker.accept_batch((0..2_100).map(prepared).collect()).await);
    worker.until(|stats| stats.completed == 2_100).await;
    worker.stop().await;
    b.advance(61);
    // The first pass is at the start, and the next one an hour away.
    let worker = start(b.builder().handler(as_noted).maintenance(MaintenanceConfig {
        retain_every: Duration::from_secs(3600),
        ..maintenance(keep_completed(60))
    }));
    worker.until(|stats| stats.deleted == 2_100).await;
    worker.stop().await;
}
