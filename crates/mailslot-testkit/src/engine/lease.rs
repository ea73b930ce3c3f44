//! Leases: heartbeats, lost leases, crashed workers.

use super::bench::{ATTEMPTS, Bench, LEASE_SECONDS, Worker, builder_on, fine, lose_leases, start, succeed};
use super::busy::{Busy, RUNNING, busy};
use super::script::{Order, Run, scripted};
use super::tap::Call;
use mailslot_core::{CancelCause, OutcomeKind, Reason, Status, StoreErrorKind, Verdict};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

cases![
    heartbeats_keep_the_lease_of_a_long_handler,
    heartbeats_go_on_while_the_handlers_block_every_thread,
    heartbeats_that_fail_for_a_while_harm_nothing,
    heartbeats_that_hang_are_given_up_and_repeated,
    a_lease_that_cannot_be_extended_in_time_is_given_up,
    a_claim_without_an_answer_is_given_up_and_repeated,
    a_lost_lease_stops_its_handler_and_refuses_its_verdict,
    a_verdict_that_the_store_refuses_for_good_leaves_its_message_to_recovery,
    what_a_dead_worker_ran_is_run_by_another,
    what_a_dead_worker_held_is_run_by_another,
    a_message_that_kills_its_workers_is_dead_lettered_as_crashed,
    two_workers_share_the_work_and_run_nothing_twice,
];

/// Moves the clock nearly to the end of every lease, and waits for a heartbeat that began after it.
async fn outlive_a_lease(b: &Bench, worker: &mailslot_engine::Inbox<super::tap::TapStore>) {
    b.advance(LEASE_SECONDS - 1);
    let beats = worker.stats().heartbeats;
    fine(worker.watch().wait_for(|stats| stats.heartbeats >= beats + 2).await);
}

async fn heartbeats_keep_the_lease_of_a_long_handler(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    for _ in 0..5 {
        outlive_a_lease(b, &worker).await;
    }
    assert_eq!((b.recover().await.leases, run.context.cancellation().cause()), (0, None));
    run.complete();
    let stats = worker.until(|stats| stats.completed == 1).await;
    assert_eq!((stats.lease_lost, stats.recovered), (0, 0));
    worker.stop().await;
}

async fn heartbeats_go_on_while_the_handlers_block_every_thread(b: &Bench) {
    let (started, mut has_started) = mpsc::unbounded_channel();
    let (release, released) = sync_channel::<()>(0);
    let released = Arc::new(Mutex::new(released));
    let handler = move |_: Order| {
        let (started, released) = (started.clone(), Arc::clone(&released));
        async move {
            fine(started.send(()));
            fine(fine(released.lock()).recv());
        }
    };
    let inbox = fine(b.builder().handler(handler).build());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::task::spawn_blocking({
        let inbox = inbox.clone();
        // A runtime with one thread, which the handler blocks.
        move || {
            fine(tokio::runtime::Builder::new_current_thread().enable_all().build())
                .block_on(inbox.run(async { stopped.await.unwrap_or_default() }))
        }
    });
    super::bench::accepted(&inbox, 1).await;
    fine(has_started.recv().await.ok_or("the handler starts"));
    for _ in 0..3 {
        outlive_a_lease(b, &inbox).await;
    }
    assert_eq!(b.recover().await.leases, 0);
    fine(release.send(()));
    fine(inbox.watch().wait_for(|stats| stats.completed == 1).await);
    drop(stop);
    fine(fine(running.await));
}

async fn heartbeats_that_fail_for_a_while_harm_nothing(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    b.tap.fail(Call::Extend, StoreErrorKind::Unavailable);
    worker.until(|stats| stats.heartbeats_failed >= 3).await;
    b.tap.mend(Call::Extend);
    outlive_a_lease(b, &worker).await;
    assert_eq!(run.context.cancellation().cause(), None);
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn heartbeats_that_hang_are_given_up_and_repeated(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    b.tap.hold(Call::Extend);
    worker.until(|stats| stats.heartbeats_failed >= 2).await;
    b.tap.open(Call::Extend);
    outlive_a_lease(b, &worker).await;
    assert_eq!(run.context.cancellation().cause(), None);
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_claim_without_an_answer_is_given_up_and_repeated(b: &Bench) {
    let worker =
        start(b.builder().handler(succeed).lease(Duration::from_millis(200), Duration::from_millis(20)));
    b.tap.hold(Call::Exchange);
    worker.order(1).await;
    worker.until(|stats| stats.store_errors >= 1).await;
    b.tap.open(Call::Exchange);
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_lease_that_cannot_be_extended_in_time_is_given_up(b: &Bench) {
    let (handler, mut runs) = scripted();
    b.tap.fail(Call::Extend, StoreErrorKind::Unavailable);
    let worker =
        start(b.builder().handler(handler).lease(Duration::from_millis(200), Duration::from_millis(20)));
    worker.order(1).await;
    let run = runs.next().await;
    assert_eq!(run.context.cancellation().cancelled().await, CancelCause::LeaseLost);
    // The store has the last word: by its clock the lease still holds.
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_lost_lease_stops_its_handler_and_refuses_its_verdict(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let id = worker.order(1).await;
    let first = runs.next().await;
    lose_leases(b, &worker).await;
    let second = runs.next().await;
    assert_eq!((second.id(), second.context.attempt().number), (id, 2));
    b.tap.mend(Call::Extend);
    assert_eq!(first.context.cancellation().cancelled().await, CancelCause::LeaseLost);
    assert_eq!(second.context.cancellation().cause(), None);
    first.end(Verdict::dead_letter("too late"));
    worker.until(|stats| stats.lease_lost == 1).await;
    assert_eq!(b.status(id).await, Status::Leased);
    second.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    let expired = (OutcomeKind::Expired, Some(Reason::LeaseExpired));
    assert_eq!(b.outcomes(id).await, [expired, (OutcomeKind::Completed, None)]);
}

async fn a_verdict_that_the_store_refuses_for_good_leaves_its_message_to_recovery(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let id = worker.order(1).await;
    let first = runs.next().await;
    b.tap.fail(Call::Exchange, StoreErrorKind::Unexpected);
    first.complete();
    // The first failure is that of the verdict, alone and together; the second is that of a claim without it.
    worker.until(|stats| stats.store_errors >= 2).await;
    b.tap.mend(Call::Exchange);
    worker.drain().await;
    assert_eq!(b.status(id).await, Status::Leased);
    b.advance(LEASE_SECONDS);
    let second = runs.next().await;
    assert_eq!((second.id(), second.context.attempt().number), (id, 2));
    second.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

/// A worker of another process.
fn start_another(b: &Bench) -> Worker {
    start(builder_on(b.other_process()).handler(succeed))
}

async fn what_a_dead_worker_ran_is_run_by_another(b: &Bench) {
    let (handler, mut runs) = scripted();
    let dying = start(b.builder().handler(handler));
    let id = dying.order(1).await;
    let mut run = runs.next().await;
    dying.kill().await;
    run.dropped().await;
    let other = start_another(b);
    other.drain().await;
    assert_eq!(other.stats().started, 0, "the lease still holds");
    b.advance(LEASE_SECONDS);
    let stats = other.until(|stats| stats.completed == 1).await;
    assert_eq!(stats.recovered, 1);
    other.stop().await;
    assert_eq!(b.attempt(id).await, 2);
}

async fn what_a_dead_worker_held_is_run_by_another(b: &Bench) {
    let Busy { worker: dying, unstarted, running, .. } = busy(b, b.builder()).await;
    let completed = dying.stats().completed;
    dying.kill().await;
    b.advance(LEASE_SECONDS);
    let other = start_another(b);
    let stats = other.until(|stats| completed + stats.completed >= 640).await;
    assert!(stats.recovered >= (unstarted.len() + RUNNING) as u64);
    other.stop().await;
    for id in running.iter().map(Run::id).chain(unstarted) {
        assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Completed, 2));
    }
}

async fn a_message_that_kills_its_workers_is_dead_lettered_as_crashed(b: &Bench) {
    let (handler, mut runs) = scripted();
    let mut id = None;
    for attempt in 1..=ATTEMPTS {
        let dying = start(builder_on(b.other_process()).handler(handler.clone()));
        if id.is_none() {
            id = Some(dying.order(1).await);
        }
        assert_eq!(runs.next().await.context.attempt().number, attempt);
        dying.kill().await;
        b.advance(LEASE_SECONDS);
    }
    let other = start(b.builder().handler(handler));
    let stats = other.until(|stats| stats.dead_lettered == 1).await;
    assert_eq!(stats.started, 0);
    other.stop().await;
    let outcomes = b.outcomes(id.expect("an order was accepted")).await;
    let mut expected = vec![(OutcomeKind::Expired, Some(Reason::LeaseExpired)); ATTEMPTS as usize];
    expected.push((OutcomeKind::DeadLettered, Some(Reason::Crashed)));
    assert_eq!(outcomes, expected);
}

async fn two_workers_share_the_work_and_run_nothing_twice(b: &Bench) {
    let workers = [start_another(b), start_another(b)];
    for number in 0..200 {
        workers[number as usize % 2].order(number).await;
    }
    let mut watches = workers.each_ref().map(|worker| worker.watch());
    loop {
        let completed: u64 = workers.iter().map(|worker| worker.stats().completed).sum();
        if completed == 200 {
            break;
        }
        let [first, second] = &mut watches;
        tokio::select! {
            changed = first.changed() => fine(changed),
            changed = second.changed() => fine(changed),
        }
    }
    let mut started = 0;
    for worker in workers {
        started += worker.stop().await.started;
    }
    assert_eq!(started, 200);
}
