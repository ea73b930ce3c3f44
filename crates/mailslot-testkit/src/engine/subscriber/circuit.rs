//! The circuit breaker: a broken dependency is left alone, by the worker and by the subscriber.

use super::super::bench::{Bench, accepted, fine, resume, start as start_worker, succeed};
use super::super::script::{Order, Run, scripted};
use super::super::tap::Call;
use super::{rig, sent, start};
use mailslot_core::breaker::{BreakerConfig, Circuit};
use mailslot_core::{HandlerError, Retry, Status, StoreErrorKind, Verdict};
use mailslot_engine::{BuildError, CircuitBreaker, Inbox, Store, SubscriberState, WorkerConfig};
use std::time::Duration;

cases![
    an_open_circuit_leaves_deliveries_to_the_broker,
    a_probe_that_fails_opens_the_circuit_again,
    probes_that_succeed_close_the_circuit,
    an_open_circuit_interrupts_nothing_that_runs,
    an_open_circuit_keeps_stored_messages_and_their_attempts,
    nothing_that_was_claimed_starts_once_the_circuit_is_open,
    a_worker_probes_as_soon_as_the_circuit_is_half_open,
    an_outage_of_the_store_opens_no_circuit,
    a_breaker_out_of_bounds_fails_the_build,
];

/// Opens with the first failure, and stays open for this long in real time.
fn breaker(open_for: Duration) -> CircuitBreaker {
    let config = BreakerConfig { samples_min: 1, open_for, probes: 2, ..BreakerConfig::default() };
    CircuitBreaker::new(config)
}

/// Opens for longer than any case once this many have run, and one of them has failed.
fn opens_at(samples_min: u32) -> CircuitBreaker {
    let config =
        BreakerConfig { samples_min, failures_percent: 1, open_for: LONG, ..BreakerConfig::default() };
    CircuitBreaker::new(config)
}

/// Longer than any case.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// As short as a case wants to wait.
const SHORT: Duration = Duration::from_millis(50);

async fn is<S: Store + Clone>(inbox: &Inbox<S>, circuit: Circuit) {
    fine(inbox.circuit().wait_for(|now| *now == circuit).await);
}

fn down() -> Verdict {
    HandlerError::retryable("the bank is down").into()
}

async fn an_open_circuit_leaves_deliveries_to_the_broker(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let inbox = b.builder().handler(handler).circuit_breaker(breaker(LONG));
    let subscriber = start(rig.recognising(inbox).concurrency(1));
    rig.publish((0..10).map(|number| sent(&number.to_string(), number))).await;
    runs.next().await.end(down());
    subscriber.until(|counts| counts.retried == 1).await;
    subscriber.is(SubscriberState::Holding).await;
    is(subscriber.inbox(), Circuit::Open).await;
    assert!(runs.is_empty());
    subscriber.stop().await;
    assert_eq!(rig.depth(), 9, "one was stored for its retry");
}

async fn a_probe_that_fails_opens_the_circuit_again(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let inbox = b.builder().handler(handler).circuit_breaker(breaker(SHORT));
    let subscriber = start(rig.recognising(inbox));
    rig.publish([sent("1", 1)]).await;
    runs.next().await.end(down());
    is(subscriber.inbox(), Circuit::Open).await;
    rig.publish([sent("2", 2), sent("3", 3)]).await;
    let probe = runs.next().await;
    is(subscriber.inbox(), Circuit::HalfOpen).await;
    assert!(runs.is_empty(), "one at a time");
    probe.end(down());
    is(subscriber.inbox(), Circuit::Open).await;
    subscriber.until(|counts| counts.retried == 2).await;
    runs.next().await.complete();
    subscriber.until(|counts| counts.handled == 1).await;
    subscriber.stop().await;
}

async fn probes_that_succeed_close_the_circuit(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let inbox = b.builder().handler(handler).circuit_breaker(breaker(SHORT));
    let subscriber = start(rig.recognising(inbox));
    rig.publish([sent("1", 1)]).await;
    runs.next().await.end(down());
    is(subscriber.inbox(), Circuit::Open).await;
    rig.publish((2..=6).map(|number| sent(&number.to_string(), number))).await;
    for _ in 0..2 {
        runs.next().await.complete();
    }
    is(subscriber.inbox(), Circuit::Closed).await;
    let rest = runs.take(3).await;
    rest.into_iter().for_each(Run::complete);
    subscriber.until(|counts| counts.handled == 5).await;
    subscriber.stop().await;
}

async fn an_open_circuit_interrupts_nothing_that_runs(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let inbox = b.builder().handler(handler).circuit_breaker(breaker(LONG));
    let subscriber = start(rig.recognising(inbox));
    rig.publish([sent("1", 1), sent("2", 2)]).await;
    let (first, second) = (runs.next().await, runs.next().await);
    first.end(down());
    is(subscriber.inbox(), Circuit::Open).await;
    assert_eq!(second.context.cancellation().cause(), None);
    second.complete();
    subscriber.until(|counts| counts.handled == 1 && counts.retried == 1).await;
    subscriber.stop().await;
    assert_eq!(rig.depth(), 0);
}

async fn an_open_circuit_keeps_stored_messages_and_their_attempts(b: &Bench) {
    let (handler, mut runs) = scripted();
    let retry = Retry::fixed(Duration::from_secs(10)).jitter(false);
    let inbox = b.builder().handler(handler).retry(retry).circuit_breaker(breaker(LONG)).concurrency(1);
    let worker = start_worker(inbox);
    let first = accepted(&worker, 1).await.id;
    let run = runs.next().await;
    let second = accepted(&worker, 2).await.id;
    run.end(down());
    worker.until(|stats| stats.retried == 1).await;
    is(&worker, Circuit::Open).await;
    b.pass_retry(&worker);
    worker.stop().await;
    assert!(runs.is_empty());
    assert_eq!(b.statuses([first, second]).await, [Status::Pending; 2]);
    assert_eq!((b.attempt(first).await, b.attempt(second).await), (1, 0));
}

async fn nothing_that_was_claimed_starts_once_the_circuit_is_open(b: &Bench) {
    // Enough that the worker claims ahead by then.
    const LAST: u32 = 60;
    async fn handler(order: Order) -> Result<(), HandlerError> {
        if order.number < LAST { Ok(()) } else { Err(HandlerError::retryable("the bank is down")) }
    }
    let inbox = b.builder().handler(handler).circuit_breaker(opens_at(LAST + 1)).concurrency(1);
    let inbox = fine(inbox.build());
    let mut ids = Vec::new();
    for number in 0..LAST + 10 {
        ids.push(accepted(&inbox, number).await.id);
    }
    let worker = resume(inbox);
    worker.until(|stats| stats.retried > 0).await;
    is(&worker, Circuit::Open).await;
    let stats = worker.stop().await;
    assert_eq!((stats.started, stats.completed), (u64::from(LAST) + 1, u64::from(LAST)));
    for id in ids.drain(LAST as usize + 1..) {
        assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Pending, 0));
    }
}

async fn a_worker_probes_as_soon_as_the_circuit_is_half_open(b: &Bench) {
    let (handler, mut runs) = scripted();
    // It would not look by itself.
    let rarely = WorkerConfig { poll: Duration::from_secs(3600), concurrency: 1, ..WorkerConfig::default() };
    let inbox = b.builder().worker(rarely).handler(handler).circuit_breaker(breaker(SHORT));
    let worker = start_worker(inbox);
    let first = accepted(&worker, 1).await.id;
    let run = runs.next().await;
    let others = [accepted(&worker, 2).await.id, accepted(&worker, 3).await.id];
    run.end(down());
    for _ in 0..2 {
        runs.next().await.complete();
    }
    is(&worker, Circuit::Closed).await;
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
    assert_eq!(b.status(first).await, Status::Pending);
    assert_eq!(b.statuses(others).await, [Status::Completed; 2]);
}

async fn an_outage_of_the_store_opens_no_circuit(b: &Bench) {
    let rig = rig(b);
    let inbox = b.builder().handler(succeed).circuit_breaker(breaker(LONG));
    let subscriber = start(rig.recognising(inbox));
    subscriber.is(SubscriberState::Receiving).await;
    b.tap.fail(Call::Conclude, StoreErrorKind::Unavailable);
    rig.publish([sent("1", 1)]).await;
    rig.pass_time_until(subscriber.until(|counts| counts.store_errors >= 3)).await;
    b.tap.mend(Call::Conclude);
    rig.pass_time_until(subscriber.until(|counts| counts.handled == 1)).await;
    assert_eq!(*subscriber.inbox().circuit().borrow(), Circuit::Closed);
    subscriber.stop().await;
}

async fn a_breaker_out_of_bounds_fails_the_build(b: &Bench) {
    let config = BreakerConfig { probes: 0, ..BreakerConfig::default() };
    let inbox = b.builder().handler(succeed).circuit_breaker(CircuitBreaker::new(config));
    let Err(BuildError::Field(error)) = inbox.build() else { panic!("no probe ever closes it") };
    assert_eq!(error.field(), "circuit_breaker.probes");
}
