//! Stopping in order.

use super::bench::{Bench, LEASE_SECONDS, start, succeed};
use super::busy::{Busy, busy};
use super::layer::Log;
use super::script::{Run, scripted};
use super::tap::Call;
use mailslot_core::{CancelCause, Context, HandlerError, Status, StoreErrorKind, Verdict};
use mailslot_engine::{Hook, WorkerConfig};
use std::time::Duration;

cases![
    an_idle_worker_stops,
    what_never_started_is_given_back_without_an_attempt,
    a_running_handler_is_told_and_may_finish,
    a_handler_that_fails_on_the_way_out_keeps_its_attempt,
    a_handler_that_gives_up_on_the_way_out_is_heard,
    a_handler_past_the_grace_time_is_dropped_and_given_back_without_an_attempt,
    the_last_verdicts_are_settled_though_the_store_fails_for_a_while,
    heartbeats_go_on_until_the_last_handler_has_ended,
    nothing_is_claimed_on_the_way_out,
];

async fn an_idle_worker_stops(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    worker.runs().await;
    worker.stop().await;
}

async fn what_never_started_is_given_back_without_an_attempt(b: &Bench) {
    let Busy { mut worker, running, unstarted, .. } = busy(b, b.builder()).await;
    worker.begin_stop();
    worker.until(|stats| stats.released >= unstarted.len() as u64).await;
    running.into_iter().for_each(Run::complete);
    worker.stop().await;
    for id in unstarted {
        assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Pending, 0));
        assert_eq!(b.history(id).await, []);
    }
}

/// Lets a handler end so after it was told that its worker stops. Gives where its message stands and its attempt.
async fn on_the_way_out(b: &Bench, verdict: impl Into<Verdict>) -> (Status, u32) {
    let (handler, mut runs) = scripted();
    let mut worker = start(b.builder().handler(handler));
    let id = worker.order(1).await;
    let run = runs.next().await;
    worker.begin_stop();
    assert_eq!(run.context.cancellation().cancelled().await, CancelCause::Shutdown);
    run.end(verdict.into());
    worker.stop().await;
    assert_eq!(b.lease(1).await.len(), usize::from(b.status(id).await == Status::Leased));
    (b.status(id).await, b.attempt(id).await)
}

async fn a_running_handler_is_told_and_may_finish(b: &Bench) {
    assert_eq!(on_the_way_out(b, Verdict::complete()).await, (Status::Completed, 1));
}

async fn a_handler_that_fails_on_the_way_out_keeps_its_attempt(b: &Bench) {
    // Given back without an attempt, so the claim above is its first again.
    assert_eq!(on_the_way_out(b, HandlerError::retryable("stopped")).await, (Status::Leased, 1));
}

async fn a_handler_that_gives_up_on_the_way_out_is_heard(b: &Bench) {
    assert_eq!(on_the_way_out(b, Verdict::dead_letter("broken")).await, (Status::DeadLettered, 1));
}

struct Abandoned(Log);

#[async_trait::async_trait]
impl Hook for Abandoned {
    async fn abandon(&self, context: &Context) {
        self.0.add(format!("abandoned {}", context.envelope().id));
    }
}

async fn a_handler_past_the_grace_time_is_dropped_and_given_back_without_an_attempt(b: &Bench) {
    let (handler, mut runs) = scripted();
    let log = Log::default();
    let config = WorkerConfig { grace: Duration::from_millis(20), ..WorkerConfig::default() };
    let mut worker = start(b.builder().worker(config).handler(handler).hook(Abandoned(log.clone())));
    let id = worker.order(1).await;
    let mut run = runs.next().await;
    worker.begin_stop();
    run.dropped().await;
    assert_eq!(worker.stop().await.released, 1);
    assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Pending, 0));
    assert_eq!(log.lines(), [format!("abandoned {id}")]);
}

async fn the_last_verdicts_are_settled_though_the_store_fails_for_a_while(b: &Bench) {
    let (handler, mut runs) = scripted();
    let mut worker = start(b.builder().handler(handler));
    let ids = [worker.order(1).await, worker.order(2).await, worker.order(3).await];
    let running = runs.take(3).await;
    b.tap.fail(Call::Exchange, StoreErrorKind::Busy);
    worker.begin_stop();
    running.into_iter().for_each(Run::complete);
    worker.until(|stats| stats.store_errors >= 2).await;
    b.tap.mend(Call::Exchange);
    assert_eq!(worker.stop().await.completed, 3);
    assert_eq!(b.statuses(ids).await, [Status::Completed; 3]);
}

async fn heartbeats_go_on_until_the_last_handler_has_ended(b: &Bench) {
    let (handler, mut runs) = scripted();
    let mut worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    worker.begin_stop();
    run.context.cancellation().cancelled().await;
    for _ in 0..3 {
        b.advance(LEASE_SECONDS - 1);
        let beats = worker.stats().heartbeats;
        worker.until(|stats| stats.heartbeats >= beats + 2).await;
    }
    assert_eq!(b.recover().await.leases, 0);
    run.complete();
    assert_eq!(worker.stop().await.completed, 1);
}

async fn nothing_is_claimed_on_the_way_out(b: &Bench) {
    let (handler, mut runs) = scripted();
    let mut worker = start(b.builder().handler(handler));
    worker.order(1).await;
    let run = runs.next().await;
    worker.begin_stop();
    run.context.cancellation().cancelled().await;
    let late = worker.order(2).await;
    worker.wake();
    b.tap.called_again(Call::Retain, 2).await;
    run.complete();
    worker.stop().await;
    assert!(runs.is_empty());
    assert_eq!(b.attempt(late).await, 0);
}
