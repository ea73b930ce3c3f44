//! The store fails at every call in turn, before its effect or after it: nothing accepted is lost, and every message
//! ends once.

use super::bench::{Bench, LEASE_SECONDS, Worker, builder_on, fine, start};
use super::script::{Order, noted};
use super::tap::TapStore;
use crate::chaos::{ChaosStore, FaultPlan, When};
use crate::invariant::broken_invariants;
use mailslot_core::store::Filter;
use mailslot_core::{Context, HandlerError, MessageId, Status, Verdict};
use mailslot_engine::Inbox;
use std::sync::Arc;

cases![
    a_failing_append_loses_and_doubles_nothing,
    a_failing_exchange_loses_and_doubles_nothing,
    a_failing_heartbeat_loses_and_doubles_nothing,
    failing_housekeeping_loses_and_doubles_nothing,
    a_worker_that_stops_while_the_store_fails_loses_nothing,
    a_worker_that_dies_while_the_store_fails_loses_nothing,
];

/// Orders that go every way, by their notes.
const NOTES: [&str; 6] = ["complete", "retry", "dead", "skip", "slow", "complete"];

/// More calls than a run makes: ends one that never comes to an end.
const CALLS_MAX: u64 = 500;

/// More rounds than a run needs to bring back what a lost answer left leased.
const ROUNDS_MAX: u32 = 20;

/// One run with its fault.
struct Fault {
    when: When,
    run: String,
}

/// Runs `scenario` with a failing first call of these operations, a failing second one, and so on until none is left
/// to fail, for each way to fail. Gives how many failures there were.
async fn every_fault(
    b: &Bench,
    operations: &[&'static str],
    scenario: impl AsyncFn(&Bench, TapStore, &Fault),
) -> u64 {
    let mut faults = 0;
    for when in [When::BeforeItsEffect, When::AfterItsEffect] {
        for call in 1..CALLS_MAX {
            let plan = Arc::new(FaultPlan::failing(call, when).only(operations));
            let store = ChaosStore::new(Arc::clone(&b.store), Arc::clone(&plan));
            let fault = Fault { when, run: format!("{when:?} {call}") };
            scenario(b, TapStore::new(Arc::new(store)), &fault).await;
            assert_eq!(fine(broken_invariants(&*b.store).await), Vec::<String>::new(), "{plan}");
            if !plan.fired() {
                break;
            }
            faults += 1;
        }
    }
    faults
}

/// A worker on a store that may fail.
fn work(tap: TapStore) -> Worker {
    let (send_inbox, inbox) = tokio::sync::watch::channel(None::<Inbox<TapStore>>);
    let handler = move |order: Order, context: Context| {
        let inbox = inbox.borrow().clone();
        async move { handle(order, context, inbox).await }
    };
    let worker = start(builder_on(tap).handler(handler));
    send_inbox.send_replace(Some((*worker).clone()));
    worker
}

async fn handle(order: Order, context: Context, inbox: Option<Inbox<TapStore>>) -> Verdict {
    match order.note.as_str() {
        "retry" if context.attempt().number == 1 => HandlerError::retryable("closed").into(),
        "dead" => Verdict::dead_letter("broken"),
        "skip" => Verdict::skip("not ours"),
        "slow" => {
            // Ends after a heartbeat, or when it is told to stop.
            if let Some(inbox) = inbox {
                let mut stats = inbox.watch();
                let beats = stats.borrow().heartbeats;
                tokio::select! {
                    _ = stats.wait_for(|stats| stats.heartbeats > beats) => {}
                    _ = context.cancellation().cancelled() => {}
                }
            }
            Verdict::complete()
        }
        _ => Verdict::complete(),
    }
}

/// Accepts every order, as a caller does who repeats what may have failed. The last two are of one session.
async fn accept_all(worker: &Worker, run: &str) -> Vec<MessageId> {
    let mut ids = Vec::new();
    for (number, note) in NOTES.into_iter().enumerate() {
        let order = noted(note);
        loop {
            let accept = worker.accept(&order).idempotency_key(format!("{run} {number}"));
            let accept = if number >= 4 { accept.session(run) } else { accept };
            match accept.await {
                Ok(receipt) => break ids.push(receipt.id),
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    }
    ids
}

/// Lets a worker go on until every message has ended; what a lost answer left leased comes back with its lease's end.
async fn finish(b: &Bench, worker: &Worker, ids: &[MessageId]) {
    for _ in 0..ROUNDS_MAX {
        worker.runs().await;
        while worker.control().drain().await.is_err() {}
        worker.control().resume();
        let mut open = 0;
        for &id in ids {
            open += u32::from(!b.status(id).await.is_terminal());
        }
        if open == 0 {
            return;
        }
        b.advance(LEASE_SECONDS);
        b.recover().await;
    }
    panic!("some messages do not end");
}

/// Every message ended once, and as its note says.
async fn ended_once(b: &Bench, run: &str, ids: &[MessageId]) {
    for (number, (id, note)) in ids.iter().zip(NOTES).enumerate() {
        let ends = b.history(*id).await.iter().filter(|outcome| outcome.kind.end().is_some()).count();
        assert_eq!(ends, 1, "{run}: the ends of {note}");
        let expected = match note {
            "dead" => Status::DeadLettered,
            "skip" => Status::Skipped,
            _ => Status::Completed,
        };
        assert_eq!(b.status(*id).await, expected, "{run}: {note}");
        let key = fine(mailslot_core::IdempotencyKey::new(format!("{run} {number}")));
        let of_key = Filter { idempotency_key: Some(key), ..Filter::default() };
        assert_eq!(b.find(of_key).await, [*id], "{run}: one message for each key");
    }
}

/// Accepts and handles everything over the failing store itself.
async fn a_day(b: &Bench, tap: TapStore, fault: &Fault) {
    let worker = work(tap);
    let ids = accept_all(&worker, &fault.run).await;
    finish(b, &worker, &ids).await;
    worker.stop().await;
    ended_once(b, &fault.run, &ids).await;
    if fault.when == When::BeforeItsEffect {
        ran_no_more_than_needed(b, &fault.run, &ids).await;
    }
}

/// A call that did not reach the store is repeated, so no handler runs again for it.
async fn ran_no_more_than_needed(b: &Bench, run: &str, ids: &[MessageId]) {
    for (id, note) in ids.iter().zip(NOTES) {
        let attempts = if note == "retry" { 2 } else { 1 };
        assert_eq!(b.attempt(*id).await, attempts, "{run}: the attempts of {note}");
    }
}

async fn a_failing_append_loses_and_doubles_nothing(b: &Bench) {
    assert_eq!(every_fault(b, &["append"], a_day).await, 2 * NOTES.len() as u64);
}

async fn a_failing_exchange_loses_and_doubles_nothing(b: &Bench) {
    let faults = every_fault(b, &["exchange"], a_day).await;
    assert!(faults >= 8, "claims and settlements failed: {faults}");
}

async fn a_failing_heartbeat_loses_and_doubles_nothing(b: &Bench) {
    let faults = every_fault(b, &["extend"], a_day).await;
    assert!(faults >= 2, "heartbeats failed: {faults}");
}

async fn failing_housekeeping_loses_and_doubles_nothing(b: &Bench) {
    let operations = ["now", "recover", "retain", "step_redrives", "counts"];
    let faults = every_fault(b, &operations, a_day).await;
    assert!(faults >= 8, "housekeeping failed: {faults}");
}

/// Stops a worker in the middle, and lets a clean one finish.
async fn stopped(b: &Bench, tap: TapStore, fault: &Fault) {
    let worker = work(tap);
    let ids = accept_all(&worker, &fault.run).await;
    worker.stop().await;
    clean_up(b, &fault.run, &ids).await;
}

/// Kills a worker in the middle, and lets a clean one finish.
async fn killed(b: &Bench, tap: TapStore, fault: &Fault) {
    let worker = work(tap);
    let ids = accept_all(&worker, &fault.run).await;
    worker.kill().await;
    clean_up(b, &fault.run, &ids).await;
}

async fn clean_up(b: &Bench, run: &str, ids: &[MessageId]) {
    let clean = work(b.other_process());
    finish(b, &clean, ids).await;
    clean.stop().await;
    ended_once(b, run, ids).await;
}

async fn a_worker_that_stops_while_the_store_fails_loses_nothing(b: &Bench) {
    let faults = every_fault(b, &["append", "exchange", "extend"], stopped).await;
    assert!(faults >= 8, "calls failed: {faults}");
}

async fn a_worker_that_dies_while_the_store_fails_loses_nothing(b: &Bench) {
    let faults = every_fault(b, &["append", "exchange", "extend"], killed).await;
    assert!(faults >= 8, "calls failed: {faults}");
}
