//! Cancelling messages at every place.

use super::bench::{Bench, Worker, fine, start};
use super::busy::{Busy, busy};
use super::script::{Run, Runs, scripted};
use mailslot_core::store::Filter;
use mailslot_core::{CancelCause, HandlerError, MessageId, OutcomeKind, Reason, Retry, Status, Verdict};

cases![
    a_pending_message_is_cancelled_and_never_runs,
    a_parked_message_is_cancelled_and_leaves_no_gap,
    a_running_handler_is_told_and_its_failure_is_the_end,
    a_handler_that_ends_well_anyway_is_completed,
    a_verdict_that_ends_the_message_stands,
    a_retry_without_an_attempt_left_is_the_end_too,
    a_handler_that_takes_no_notice_is_cancelled_when_it_fails,
    what_is_claimed_and_not_started_is_cancelled_unseen,
];

async fn cancel(worker: &Worker, ids: impl IntoIterator<Item = MessageId>) -> u64 {
    fine(worker.operator().cancel(&Filter::of_ids(ids)).await).changed
}

async fn a_pending_message_is_cancelled_and_never_runs(b: &Bench) {
    let (handler, runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let due_in = std::time::Duration::from_secs(60);
    let id = fine(worker.accept(&super::script::order(1)).due_in(due_in).await).id;
    assert_eq!(cancel(&worker, [id]).await, 1);
    b.advance(60);
    worker.drain().await;
    worker.stop().await;
    assert!(runs.is_empty());
    assert_eq!(b.outcomes(id).await, [(OutcomeKind::Cancelled, Some(Reason::Operator))]);
}

async fn a_parked_message_is_cancelled_and_leaves_no_gap(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    worker.order_in("s", 1).await;
    let parked = worker.order_in("s", 2).await;
    worker.order_in("s", 3).await;
    assert_eq!(cancel(&worker, [parked]).await, 1);
    for number in [1, 3] {
        let run = runs.next().await;
        assert_eq!(run.order.number, number);
        run.complete();
    }
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
    assert_eq!(b.status(parked).await, Status::Cancelled);
}

/// A handler that has been told that its message is to be cancelled.
async fn told(b: &Bench, retry: Option<Retry>) -> (Worker, Run, Runs) {
    let (handler, mut runs) = scripted();
    let mut builder = b.builder().handler(handler);
    if let Some(retry) = retry {
        builder = builder.retry(retry);
    }
    let worker = start(builder);
    let id = worker.order(1).await;
    let run = runs.next().await;
    assert_eq!(cancel(&worker, [id]).await, 1);
    assert_eq!(run.context.cancellation().cancelled().await, CancelCause::Requested);
    (worker, run, runs)
}

async fn a_running_handler_is_told_and_its_failure_is_the_end(b: &Bench) {
    let (worker, run, runs) = told(b, None).await;
    let id = run.id();
    run.end(Err::<(), _>(HandlerError::retryable("stopped")));
    worker.until(|stats| stats.cancelled == 1).await;
    worker.drain().await;
    worker.stop().await;
    assert!(runs.is_empty());
    assert_eq!(b.end(id).await, (Status::Cancelled, Some(Reason::Operator)));
}

async fn a_handler_that_ends_well_anyway_is_completed(b: &Bench) {
    let (worker, run, _runs) = told(b, None).await;
    let id = run.id();
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!(b.end(id).await, (Status::Completed, None));
}

async fn a_verdict_that_ends_the_message_stands(b: &Bench) {
    let (worker, run, _runs) = told(b, None).await;
    let id = run.id();
    run.end(Verdict::dead_letter("broken"));
    worker.until(|stats| stats.dead_lettered == 1).await;
    worker.stop().await;
    assert_eq!(b.status(id).await, Status::DeadLettered);
}

async fn a_retry_without_an_attempt_left_is_the_end_too(b: &Bench) {
    let (worker, run, _runs) = told(b, Some(Retry::never())).await;
    let id = run.id();
    run.end(Err::<(), _>(HandlerError::retryable("stopped")));
    worker.until(|stats| stats.cancelled == 1).await;
    worker.stop().await;
    assert_eq!(b.status(id).await, Status::Cancelled);
}

async fn a_handler_that_takes_no_notice_is_cancelled_when_it_fails(b: &Bench) {
    let (handler, mut runs) = scripted();
    // Heartbeats that never come: the request is known to the store alone.
    let hour = std::time::Duration::from_secs(3600);
    let worker = start(b.builder().handler(handler).lease(2 * hour, hour));
    let id = worker.order(1).await;
    let run = runs.next().await;
    assert_eq!(cancel(&worker, [id]).await, 1);
    assert_eq!(cancel(&worker, [id]).await, 0, "the request is recorded once");
    run.end(Err::<(), _>(HandlerError::retryable("closed")));
    worker.until(|stats| stats.cancelled == 1).await;
    worker.stop().await;
    assert_eq!(b.status(id).await, Status::Cancelled);
}

async fn what_is_claimed_and_not_started_is_cancelled_unseen(b: &Bench) {
    let busy = busy(b, b.builder()).await;
    let unwanted = busy.unstarted[0];
    assert_eq!(cancel(&busy.worker, [unwanted]).await, 1);
    // A heartbeat that began after it tells the worker.
    let beats = busy.worker.stats().heartbeats;
    busy.worker.until(|stats| stats.heartbeats >= beats + 2).await;
    let Busy { mut worker, running, .. } = busy;
    worker.begin_stop();
    worker.until(|stats| stats.cancelled == 1).await;
    running.into_iter().for_each(Run::complete);
    worker.stop().await;
    assert_eq!((b.status(unwanted).await, b.attempt(unwanted).await), (Status::Cancelled, 1));
}
