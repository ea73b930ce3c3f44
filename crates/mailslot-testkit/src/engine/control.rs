//! Pause, resume, drain; and who may run.

use super::bench::{Bench, accepted, fine, resume, start, succeed};
use super::busy::{Busy, RUNNING, busy};
use super::script::{Run, order, scripted};
use super::tap::Call;
use mailslot_core::{HandlerError, Status};
use mailslot_engine::{ControlError, RunError, WorkerState};
use std::time::Duration;

cases![
    a_pause_gives_back_what_never_started_and_waits_for_what_runs,
    a_paused_worker_claims_nothing_until_it_is_resumed,
    a_drain_handles_all_that_is_due_and_nothing_else,
    a_drain_reaches_past_what_one_claim_holds,
    a_drain_reaches_what_its_own_work_makes_due,
    a_drain_does_not_end_with_a_claim_from_before_it,
    a_drain_may_follow_a_drain,
    a_drain_may_follow_a_pause,
    a_stopped_worker_cannot_be_controlled,
    a_worker_that_stops_ends_a_drain,
    a_resume_ends_the_wait_of_a_pause,
    a_worker_that_runs_again_is_neither_paused_nor_drained,
    an_inbox_runs_once_at_a_time,
    an_inbox_without_a_handler_does_not_run,
];

async fn a_pause_gives_back_what_never_started_and_waits_for_what_runs(b: &Bench) {
    let Busy { worker, mut running, unstarted, .. } = busy(b, b.builder()).await;
    let pausing = tokio::spawn({
        let control = worker.control();
        async move { control.pause().await }
    });
    worker.until(|stats| stats.released >= unstarted.len() as u64).await;
    for id in unstarted {
        assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Pending, 0));
    }
    let last = running.pop().expect("several run");
    running.into_iter().for_each(Run::complete);
    worker.until(|stats| stats.completed % RUNNING as u64 == RUNNING as u64 - 1).await;
    assert_eq!(worker.control().state(), WorkerState::Pausing);
    assert!(!pausing.is_finished());
    last.complete();
    fine(fine(pausing.await));
    assert_eq!(worker.control().state(), WorkerState::Paused);
    assert_eq!(fine(worker.operator().leases(10).await), []);
    worker.stop().await;
}

async fn a_paused_worker_claims_nothing_until_it_is_resumed(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    worker.runs().await;
    fine(worker.control().pause().await);
    let claims = b.tap.calls(Call::Claim);
    worker.order(1).await;
    worker.wake();
    // Time for a worker that is wrong: other loops come round twice.
    b.tap.called_again(Call::Retain, 2).await;
    assert_eq!(b.tap.calls(Call::Claim), claims);
    worker.control().resume();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_drain_handles_all_that_is_due_and_nothing_else(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let due = [worker.order_in("s", 1).await, worker.order_in("s", 2).await, worker.order_in("s", 3).await];
    let failing = worker.order(4).await;
    let scheduled = fine(worker.accept(&order(5)).due_in(Duration::from_secs(1)).await).id;
    let [head, fails] = runs.take_sorted().await;
    let draining = tokio::spawn({
        let control = worker.control();
        async move { control.drain().await }
    });
    b.tap.called(Call::DrainClaim, 1).await;
    b.advance(1);
    let later = worker.order(6).await;
    fails.end(Err::<(), _>(HandlerError::retryable("closed")));
    head.complete();
    for number in [2, 3] {
        let run = runs.next().await;
        assert_eq!(run.order.number, number);
        assert_eq!(worker.control().state(), WorkerState::Draining);
        run.complete();
    }
    fine(fine(draining.await));
    assert_eq!(worker.control().state(), WorkerState::Drained);
    assert!(runs.is_empty());
    assert_eq!(b.statuses(due).await, [Status::Completed; 3]);
    assert_eq!(b.statuses([failing, scheduled, later]).await, [Status::Pending; 3]);
    worker.control().resume();
    runs.take(2).await.into_iter().for_each(Run::complete);
    worker.until(|stats| stats.completed == 5).await;
    worker.stop().await;
}

async fn a_drain_reaches_past_what_one_claim_holds(b: &Bench) {
    let worker = start(b.builder().handler(succeed).concurrency(2));
    for number in 0..100 {
        worker.order(number).await;
    }
    worker.drain().await;
    assert_eq!(worker.stats().completed, 100);
    worker.stop().await;
}

/// A store may take several exchanges at once, so that a claim which looked before the head of a session was settled may
/// answer after it: many short sessions, one drain after the other, meet that moment.
async fn a_drain_reaches_what_its_own_work_makes_due(b: &Bench) {
    const ROUNDS: u32 = 8;
    const SESSIONS: [&str; 2] = ["a", "b"];
    const EACH: u32 = 4;
    let worker = start(b.builder().handler(succeed));
    let mut due = 0;
    for round in 1..=ROUNDS {
        for number in 0..EACH {
            for session in SESSIONS {
                worker.order_in(session, number).await;
                due += 1;
            }
        }
        worker.drain().await;
        assert_eq!(worker.stats().completed, due, "round {round}");
    }
    worker.stop().await;
}

async fn a_drain_does_not_end_with_a_claim_from_before_it(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    worker.runs().await;
    let done = b.tap.hold_answers(Call::Exchange);
    b.tap.done_beyond(Call::Exchange, done).await;
    // The store has answered a claim that found nothing; the answer is on its way.
    let id = worker.order(1).await;
    let asked = b.tap.calls(Call::Now);
    let draining = tokio::spawn({
        let control = worker.control();
        async move { control.drain().await }
    });
    b.tap.called(Call::Now, asked + 1).await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    b.tap.open(Call::Exchange);
    fine(fine(draining.await));
    assert_eq!(b.status(id).await, Status::Completed);
    worker.stop().await;
}

async fn a_drain_may_follow_a_drain(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    worker.runs().await;
    for number in 1..=20 {
        b.advance(1);
        let id = worker.order(number).await;
        fine(worker.control().drain().await);
        assert_eq!(b.status(id).await, Status::Completed, "drain {number}");
    }
    worker.stop().await;
}

async fn a_drain_may_follow_a_pause(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    worker.runs().await;
    fine(worker.control().pause().await);
    let id = worker.order(1).await;
    fine(worker.control().drain().await);
    assert_eq!(b.status(id).await, Status::Completed);
    worker.stop().await;
}

async fn a_stopped_worker_cannot_be_controlled(b: &Bench) {
    let inbox = fine(b.builder().handler(succeed).build());
    assert_eq!(inbox.control().state(), WorkerState::Stopped);
    assert!(matches!(inbox.control().pause().await, Err(ControlError::NotRunning)));
    assert!(matches!(inbox.control().drain().await, Err(ControlError::NotRunning)));
    accepted(&inbox, 1).await;
    let worker = resume(inbox);
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_worker_that_stops_ends_a_drain(b: &Bench) {
    let (handler, mut runs) = scripted();
    let mut worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    let draining = tokio::spawn({
        let control = worker.control();
        async move { control.drain().await }
    });
    b.tap.called(Call::DrainClaim, 1).await;
    worker.begin_stop();
    run.complete();
    assert!(matches!(fine(draining.await), Err(ControlError::NotRunning)));
    assert_eq!(worker.stop().await.completed, 1);
}

async fn a_resume_ends_the_wait_of_a_pause(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    let control = worker.control();
    let mut pausing = std::pin::pin!(control.pause());
    assert!(futures_util::poll!(&mut pausing).is_pending(), "a handler runs");
    worker.control().resume();
    assert!(matches!(pausing.await, Err(ControlError::Overruled)));
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_worker_that_runs_again_is_neither_paused_nor_drained(b: &Bench) {
    let inbox = fine(b.builder().handler(succeed).build());
    let drained = resume(inbox.clone());
    drained.runs().await;
    fine(drained.control().drain().await);
    drained.stop().await;
    b.advance(1);
    let paused = resume(inbox.clone());
    paused.order(1).await;
    paused.until(|stats| stats.completed == 1).await;
    fine(paused.control().pause().await);
    paused.stop().await;
    let worker = resume(inbox);
    worker.order(2).await;
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
}

async fn an_inbox_runs_once_at_a_time(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    worker.runs().await;
    let second = worker.run(std::future::ready(())).await;
    assert!(matches!(second, Err(RunError::AlreadyRunning)));
    let inbox = (*worker).clone();
    worker.stop().await;
    fine(inbox.run(std::future::ready(())).await);
}

async fn an_inbox_without_a_handler_does_not_run(b: &Bench) {
    let inbox = fine(b.builder().build());
    assert!(matches!(inbox.run(std::future::ready(())).await, Err(RunError::NoHandlers)));
}
