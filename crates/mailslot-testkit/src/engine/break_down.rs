//! Handlers that break: panics and time limits.

use super::bench::{ATTEMPTS, Bench, Worker, fail, fine, start, succeed};
use super::script::{Order, Refund, scripted};
use mailslot_core::store::Change;
use mailslot_core::{Context, HandlerError, OutcomeKind, Reason, Status, Verdict};
use mailslot_engine::{HandlerOptions, Hook, WorkerConfig};
use std::time::Duration;

cases![
    a_panic_is_an_error_like_any_other,
    a_panic_harms_no_other_message,
    a_panic_in_a_hook_is_an_error_like_any_other,
    a_panic_in_the_classifier_leaves_the_handler_its_own_word,
    running_past_the_time_limit_is_an_error_like_any_other,
    a_handler_past_its_limit_is_dropped,
    a_handler_may_have_a_limit_of_its_own,
];

/// Panics without the noise of the panic hook.
fn panic_quietly(text: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(text))
}

/// What is recorded of a message whose attempts all end for `reason`.
fn exhausted_by(reason: Reason) -> Vec<(OutcomeKind, Option<Reason>)> {
    let mut outcomes = vec![(OutcomeKind::Retried, Some(reason)); ATTEMPTS as usize - 1];
    outcomes.push((OutcomeKind::DeadLettered, Some(Reason::AttemptsExhausted)));
    outcomes
}

/// Passes the delays of retries until the message has no attempt left.
async fn pass_retries(b: &Bench, worker: &Worker) {
    for retried in 1..u64::from(ATTEMPTS) {
        worker.until(|stats| stats.retried == retried).await;
        b.pass_retry(worker);
    }
    worker.until(|stats| stats.dead_lettered == 1).await;
}

async fn a_panic_is_an_error_like_any_other(b: &Bench) {
    async fn handler(_order: Order) {
        panic_quietly("no such account");
    }
    let worker = start(b.builder().handler(handler));
    let id = worker.order(1).await;
    pass_retries(b, &worker).await;
    worker.stop().await;
    assert_eq!(b.outcomes(id).await, exhausted_by(Reason::Panicked));
    let error = b.record(id).await.error.expect("the text is kept");
    assert_eq!(error.as_str(), "the handler panicked: no such account");
}

async fn a_panic_harms_no_other_message(b: &Bench) {
    async fn handler(order: Order) {
        if order.number.is_multiple_of(2) {
            panic_quietly("even");
        }
    }
    let worker = start(b.builder().handler(handler).concurrency(1));
    for number in 0..10 {
        worker.order(number).await;
    }
    worker.until(|stats| stats.completed == 5 && stats.retried == 5).await;
    worker.stop().await;
}

struct Panics(&'static str);

#[async_trait::async_trait]
impl Hook for Panics {
    async fn before_dispatch(&self, _: &Context) -> Result<(), HandlerError> {
        if self.0 == "before" { panic_quietly("before") } else { Ok(()) }
    }

    async fn should_dispatch(&self, _: &Context) -> Result<bool, HandlerError> {
        if self.0 == "should" { panic_quietly("should") } else { Ok(true) }
    }

    async fn after_dispatch(&self, _: &Context, _: &Verdict) -> Result<(), HandlerError> {
        if self.0 == "after" { panic_quietly("after") } else { Ok(()) }
    }
}

async fn a_panic_in_a_hook_is_an_error_like_any_other(b: &Bench) {
    // As the errors of a hook: before the handler it is retried, after it nothing runs twice by itself.
    let places = [("before", Status::Pending), ("should", Status::Pending), ("after", Status::DeadLettered)];
    for (place, status) in places {
        let worker = start(b.builder().handler(succeed).hook(Panics(place)).concurrency(1));
        let ids = [worker.order(1).await, worker.order(2).await];
        worker.until(|stats| stats.retried + stats.dead_lettered == 2).await;
        assert_eq!(worker.stop().await.hooks_failed, 2);
        assert_eq!(b.end(ids[1]).await, (status, Some(Reason::HookFailed)), "{place}");
        b.change(Change::Purge, ids).await;
    }
}

async fn a_panic_in_the_classifier_leaves_the_handler_its_own_word(b: &Bench) {
    let classify = |_: &HandlerError| panic_quietly("classifier");
    let worker = start(b.builder().handler(fail).classify(classify).concurrency(1));
    let ids = [worker.order(1).await, worker.order(2).await];
    worker.until(|stats| stats.retried == 2).await;
    worker.stop().await;
    assert_eq!(b.end(ids[1]).await, (Status::Pending, Some(Reason::Failed)));
}

const LIMIT: Duration = Duration::from_millis(10);

async fn running_past_the_time_limit_is_an_error_like_any_other(b: &Bench) {
    let endless = async |_: Order| std::future::pending::<()>().await;
    let limited = HandlerOptions::new().time_limit(LIMIT);
    let worker = start(b.builder().handler_with(endless, limited));
    let id = worker.order(1).await;
    pass_retries(b, &worker).await;
    let stats = worker.stop().await;
    assert_eq!((stats.started, stats.lease_lost), (u64::from(ATTEMPTS), 0));
    assert_eq!(b.outcomes(id).await, exhausted_by(Reason::TimedOut));
}

async fn a_handler_past_its_limit_is_dropped(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler_with(handler, HandlerOptions::new().time_limit(LIMIT)));
    worker.order(1).await;
    runs.next().await.dropped().await;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
}

async fn a_handler_may_have_a_limit_of_its_own(b: &Bench) {
    let (handler, mut runs) = scripted();
    let endless = async |_: Refund| std::future::pending::<()>().await;
    let worker = WorkerConfig { time_limit: Some(LIMIT), ..WorkerConfig::default() };
    let own = HandlerOptions::new().time_limit(Duration::from_secs(3600));
    let worker = start(b.builder().worker(worker).handler_with(handler, own).handler(endless));
    worker.order(1).await;
    let run = runs.next().await;
    fine(worker.accept(&Refund { number: 1 }).await);
    worker.until(|stats| stats.retried == 1).await;
    run.complete();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}
