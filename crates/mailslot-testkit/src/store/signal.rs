//! The work signal: whoever listens first and looks then misses nothing.

use super::Fixture;
use super::verbs::{done, order};
use mailslot_core::Status;
use mailslot_core::store::{Change, Filter, HandoffResult, RedriveSpec};
use std::future::Future;
use std::time::Duration;

cases![
    an_accept_wakes_those_who_wait,
    a_release_wakes_those_who_wait,
    the_end_of_a_head_wakes_those_who_wait,
    a_recovery_wakes_those_who_wait,
    a_requeue_wakes_those_who_wait,
    an_unblocked_session_wakes_those_who_wait,
    a_redrive_wakes_those_who_wait,
    a_handoff_wakes_those_who_wait,
    everyone_who_waits_is_woken,
];

/// The wake-up itself takes no time; this only ends a test that fails.
const WOKEN_WITHIN: Duration = Duration::from_secs(10);

async fn check_wakes<T>(fx: &Fixture, work: impl Future<Output = T>) {
    let woken = fx.store.work_signal().listen();
    work.await;
    assert!(tokio::time::timeout(WOKEN_WITHIN, woken).await.is_ok(), "nobody was woken");
}

async fn an_accept_wakes_those_who_wait(fx: &Fixture) {
    check_wakes(fx, fx.accept(order())).await;
}

async fn a_release_wakes_those_who_wait(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    check_wakes(fx, fx.release(&leased)).await;
}

async fn the_end_of_a_head_wakes_those_who_wait(fx: &Fixture) {
    fx.accept_all((0..2).map(|_| order().session("s"))).await;
    let head = fx.lease_one().await;
    check_wakes(fx, fx.complete(&head)).await;
}

async fn a_recovery_wakes_those_who_wait(fx: &Fixture) {
    fx.accept(order()).await;
    fx.lease_one().await;
    fx.advance(61);
    check_wakes(fx, fx.recover()).await;
}

async fn a_requeue_wakes_those_who_wait(fx: &Fixture) {
    let dead = fx.place(order(), Status::DeadLettered).await;
    check_wakes(fx, fx.change(Change::Requeue, [dead.id])).await;
}

async fn an_unblocked_session_wakes_those_who_wait(fx: &Fixture) {
    for change in [Change::Skip, Change::Purge] {
        let dead = fx.place(order().session("s"), Status::DeadLettered).await;
        fx.accept(order().session("s")).await;
        check_wakes(fx, fx.change(change, [dead.id])).await;
        fx.complete(&fx.lease_one().await).await;
    }
}

async fn a_redrive_wakes_those_who_wait(fx: &Fixture) {
    fx.place(order(), Status::DeadLettered).await;
    done(fx.store.create_redrive(RedriveSpec { filter: Filter::default(), rate: 1 }).await);
    check_wakes(fx, fx.store.step_redrives()).await;
}

async fn a_handoff_wakes_those_who_wait(fx: &Fixture) {
    let suspended = fx.place(order().session("s"), Status::Suspended).await;
    fx.accept(order().session("s")).await;
    check_wakes(fx, fx.store.settle_handoff(suspended.id, HandoffResult::Completed)).await;
}

async fn everyone_who_waits_is_woken(fx: &Fixture) {
    let waiting: Vec<_> = (0..5).map(|_| fx.store.work_signal().listen()).collect();
    fx.accept(order()).await;
    for woken in waiting {
        assert!(tokio::time::timeout(WOKEN_WITHIN, woken).await.is_ok(), "somebody was not woken");
    }
}
