//! Retries: when, how often, and what ends without one.

use super::bench::{ATTEMPTS, Bench, RETRY_SECONDS, Worker, fail, fine, start};
use super::script::{Order, Refund, scripted};
use jiff::SignedDuration;
use mailslot_core::{
    ErrorClass, HandlerError, MessageId, OutcomeKind, Reason, Retry, ScriptedRandom, Status, Verdict,
};
use mailslot_engine::HandlerOptions;
use std::sync::Arc;
use std::time::Duration;

cases![
    an_exponential_delay_doubles_up_to_its_longest,
    a_linear_delay_grows_by_the_same_step,
    jitter_spreads_a_delay_to_both_sides,
    a_handler_may_lengthen_a_delay_and_never_shorten_it,
    a_retry_is_not_run_before_it_is_due,
    a_handler_may_have_a_policy_of_its_own,
    the_last_attempt_ends_in_a_dead_letter,
    a_requeued_message_has_all_its_attempts_again,
    a_permanent_error_is_dead_lettered_at_once,
    a_discarding_error_skips_the_message,
    a_classifier_has_the_first_word_about_an_error,
    a_classifier_is_not_asked_about_a_verdict,
];

/// The delay before each next attempt of a message that always fails.
async fn delays(b: &Bench, retry: Retry, unit: f64) -> Vec<i64> {
    let random = Arc::new(ScriptedRandom::new(vec![unit]));
    let worker = start(b.builder().handler(fail).retry(retry).random(random));
    let id = worker.order(1).await;
    let mut delays = Vec::new();
    while worker.until(|stats| stats.retried + stats.dead_lettered > delays.len() as u64).await.dead_lettered
        == 0
    {
        let delay = delay_of(b, id).await;
        b.clock.advance(SignedDuration::from_millis(delay));
        worker.wake();
        delays.push(delay);
    }
    worker.stop().await;
    delays
}

/// In how many milliseconds a message is due.
async fn delay_of(b: &Bench, id: MessageId) -> i64 {
    let due_at = b.record(id).await.due_at.expect("it waits for its next attempt");
    i64::try_from(due_at.duration_since(b.now()).as_millis()).expect("delays are short")
}

async fn an_exponential_delay_doubles_up_to_its_longest(b: &Bench) {
    let retry = Retry::exponential(Duration::from_secs(1)).max_delay(Duration::from_secs(5)).jitter(false);
    assert_eq!(delays(b, retry.max_attempts(6), 0.5).await, [1_000, 2_000, 4_000, 5_000, 5_000]);
}

async fn a_linear_delay_grows_by_the_same_step(b: &Bench) {
    let retry = Retry::linear(Duration::from_secs(2)).jitter(false);
    assert_eq!(delays(b, retry.max_attempts(5), 0.5).await, [2_000, 4_000, 6_000, 8_000]);
}

async fn jitter_spreads_a_delay_to_both_sides(b: &Bench) {
    let retry = Retry::fixed(Duration::from_secs(10)).max_attempts(2);
    assert_eq!(delays(b, retry.clone(), 0.0).await, [8_000]);
    assert_eq!(delays(b, retry.clone(), 0.5).await, [10_000]);
    assert_eq!(delays(b, retry.clone(), 1.0).await, [12_000]);
    let capped = Duration::from_secs(11);
    assert_eq!(delays(b, retry.max_delay(capped), 1.0).await, [11_000]);
}

/// Lets an order end so on its first attempt.
async fn first_attempt(b: &Bench, verdict: impl Into<Verdict>) -> (Worker, MessageId) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let id = worker.order(1).await;
    runs.next().await.end(verdict.into());
    worker.until(|stats| stats.retried + stats.dead_lettered + stats.skipped == 1).await;
    (worker, id)
}

async fn a_handler_may_lengthen_a_delay_and_never_shorten_it(b: &Bench) {
    let closed = || HandlerError::retryable("closed");
    let verdicts = [
        (closed().retry_after(Duration::from_secs(25)).into(), 25_000),
        (closed().retry_after(Duration::from_secs(1)).into(), 1_000 * RETRY_SECONDS),
        (Verdict::retry_after(Duration::from_secs(25), "closed"), 25_000),
        (Verdict::retry_after(Duration::ZERO, "closed"), 1_000 * RETRY_SECONDS),
    ];
    for (verdict, delay) in verdicts {
        let (worker, id) = first_attempt(b, verdict).await;
        worker.stop().await;
        assert_eq!(delay_of(b, id).await, delay);
    }
}

async fn a_retry_is_not_run_before_it_is_due(b: &Bench) {
    let (worker, id) = first_attempt(b, HandlerError::retryable("closed")).await;
    b.advance(RETRY_SECONDS - 1);
    worker.drain().await;
    assert_eq!((b.status(id).await, worker.stats().started), (Status::Pending, 1));
    b.advance(1);
    worker.wake();
    worker.until(|stats| stats.started == 2).await;
    worker.kill().await;
}

async fn a_handler_may_have_a_policy_of_its_own(b: &Bench) {
    let never = async |_: Refund| Err::<(), _>(HandlerError::retryable("closed"));
    let own = HandlerOptions::new().retry(Retry::never());
    let worker = start(b.builder().handler(fail).handler_with(never, own));
    let order = worker.order(1).await;
    let refund = fine(worker.accept(&Refund { number: 1 }).await).id;
    worker.until(|stats| stats.retried == 1 && stats.dead_lettered == 1).await;
    worker.stop().await;
    assert_eq!(b.statuses([order, refund]).await, [Status::Pending, Status::DeadLettered]);
}

/// Fails an order until it is dead-lettered.
async fn exhaust(b: &Bench, worker: &Worker) -> MessageId {
    let before = worker.stats();
    let id = worker.order(1).await;
    for retried in 1..u64::from(ATTEMPTS) {
        worker.until(|stats| stats.retried == before.retried + retried).await;
        b.pass_retry(worker);
    }
    worker.until(|stats| stats.dead_lettered > before.dead_lettered).await;
    id
}

async fn the_last_attempt_ends_in_a_dead_letter(b: &Bench) {
    let worker = start(b.builder().handler(fail));
    let id = exhaust(b, &worker).await;
    assert_eq!(worker.stop().await.started, u64::from(ATTEMPTS));
    let retried = (OutcomeKind::Retried, Some(Reason::Failed));
    let ended = (OutcomeKind::DeadLettered, Some(Reason::AttemptsExhausted));
    assert_eq!(b.outcomes(id).await, [retried, retried, ended]);
    assert_eq!(b.record(id).await.error.expect("the text is kept").as_str(), "the bank is closed");
}

async fn a_requeued_message_has_all_its_attempts_again(b: &Bench) {
    let worker = start(b.builder().handler(fail));
    let id = exhaust(b, &worker).await;
    let changes = fine(worker.operator().requeue(&mailslot_core::store::Filter::of_ids([id])).await);
    assert_eq!((changes.requested, changes.changed), (Some(1), 1));
    worker
        .until(|stats| stats.started == u64::from(ATTEMPTS) + 1 && stats.retried == u64::from(ATTEMPTS))
        .await;
    worker.stop().await;
    assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Pending, 1));
}

async fn a_permanent_error_is_dead_lettered_at_once(b: &Bench) {
    let (worker, id) = first_attempt(b, HandlerError::permanent("no such account")).await;
    worker.stop().await;
    assert_eq!(b.outcomes(id).await, [(OutcomeKind::DeadLettered, Some(Reason::Permanent))]);
}

async fn a_discarding_error_skips_the_message(b: &Bench) {
    let (worker, id) = first_attempt(b, HandlerError::discard("sold out")).await;
    worker.stop().await;
    assert_eq!(b.outcomes(id).await, [(OutcomeKind::Skipped, Some(Reason::Discarded))]);
}

/// Classifies errors by their text; other texts are left alone.
fn by_text(error: &HandlerError) -> Option<ErrorClass> {
    match error.source().to_string().as_str() {
        "retry" => Some(ErrorClass::Retryable),
        "give up" => Some(ErrorClass::Permanent),
        "drop" => Some(ErrorClass::Discard),
        _ => None,
    }
}

async fn a_classifier_has_the_first_word_about_an_error(b: &Bench) {
    let handler = async |order: Order| Err::<(), _>(HandlerError::permanent(order.note));
    let worker = start(b.builder().handler(handler).classify(by_text));
    let mut ends = Vec::new();
    for note in ["retry", "give up", "drop", "unknown"] {
        ends.push(fine(worker.accept(&Order { number: 1, note: note.into() }).await).id);
    }
    worker.until(|stats| stats.retried + stats.dead_lettered + stats.skipped == 4).await;
    worker.stop().await;
    assert_eq!(b.end(ends[0]).await, (Status::Pending, Some(Reason::Failed)));
    assert_eq!(b.end(ends[1]).await, (Status::DeadLettered, Some(Reason::Permanent)));
    assert_eq!(b.end(ends[2]).await, (Status::Skipped, Some(Reason::Discarded)));
    assert_eq!(b.end(ends[3]).await, (Status::DeadLettered, Some(Reason::Permanent)));
}

async fn a_classifier_is_not_asked_about_a_verdict(b: &Bench) {
    let handler = async |_: Order| Verdict::retry_after(Duration::ZERO, "drop");
    let worker = start(b.builder().handler(handler).classify(by_text));
    let id = worker.order(1).await;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
    assert_eq!(b.status(id).await, Status::Pending);
}
