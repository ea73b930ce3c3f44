//! Two copies of one message at the same time, in two processes.

use super::super::bench::{Bench, fine};
use super::super::script::{Run, noted, scripted};
use super::super::tap::{Call, TapStore};
use super::super::transaction::Body;
use super::{encoded, rig, sent, start};
use mailslot_core::broker::BrokerMessage;
use mailslot_core::{CancelCause, HandlerError, StoreErrorKind, Verdict};
use mailslot_engine::{Deduplication, SubscriberBuilder};
use std::sync::Arc;
use std::time::Duration;

cases![
    without_a_claim_both_handlers_run_and_both_successes_count,
    with_a_claim_one_handler_runs,
    a_claim_holds_for_as_long_as_its_handler_runs,
    the_claim_of_a_dead_process_runs_out,
    a_claim_is_given_up_with_the_delivery,
    a_claim_that_is_lost_stops_its_handler,
    in_its_transaction_a_handler_takes_effect_once needs Transactions,
    the_transaction_of_a_failing_handler_is_undone needs Transactions,
];

/// Long beside any case, by the clock that the cases move.
const LONG: Duration = Duration::from_secs(24 * 3600);

fn claiming() -> Deduplication {
    Deduplication::new().claim(LONG)
}

/// A subscriber that holds one delivery, so that the next one goes to another process.
fn narrow(builder: SubscriberBuilder<TapStore>) -> SubscriberBuilder<TapStore> {
    builder.concurrency(1).hold(1)
}

async fn without_a_claim_both_handlers_run_and_both_successes_count(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let here = start(narrow(rig.recognising(b.builder().handler(handler.clone()))));
    rig.publish([sent("m1", 1)]).await;
    let first = runs.next().await;
    let there = start(narrow(rig.recognising(rig.elsewhere().handler(handler))));
    rig.publish([sent("m1", 1)]).await;
    let second = runs.next().await;
    [first, second].into_iter().for_each(Run::complete);
    here.until(|counts| counts.handled == 1).await;
    there.until(|counts| counts.handled == 1).await;
    here.stop().await;
    there.stop().await;
}

async fn with_a_claim_one_handler_runs(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let here = rig.subscribe(b.builder().handler(handler.clone())).dedup(claiming());
    let here = start(narrow(here));
    rig.publish([sent("m1", 1)]).await;
    let only = runs.next().await;
    let there = start(rig.subscribe(rig.elsewhere().handler(handler)).dedup(claiming()));
    rig.publish([sent("m1", 1)]).await;
    there.until(|counts| counts.returned == 1).await;
    assert!(runs.is_empty());
    only.complete();
    here.until(|counts| counts.handled == 1).await;
    here.stop().await;
    rig.pass_time_until(there.until(|counts| counts.duplicates == 1)).await;
    assert!(runs.is_empty());
    assert_eq!(there.stop().await.handled, 0);
}

async fn a_claim_holds_for_as_long_as_its_handler_runs(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let short = Deduplication::new().claim(Duration::from_millis(150));
    let here = start(rig.subscribe(b.builder().handler(handler)).dedup(short));
    rig.publish([sent("m1", 1)]).await;
    let run = runs.next().await;
    b.tap.called(Call::ClaimDelivery, 4).await;
    assert_eq!(run.context.cancellation().cause(), None);
    run.complete();
    here.until(|counts| counts.handled == 1).await;
    here.stop().await;
}

async fn the_claim_of_a_dead_process_runs_out(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let dying = start(rig.subscribe(b.builder().handler(handler.clone())).dedup(claiming()));
    rig.publish([sent("m1", 1)]).await;
    let first = runs.next().await;
    dying.kill().await;
    drop(first);
    let there = start(rig.subscribe(rig.elsewhere().handler(handler)).dedup(claiming()));
    there.until(|counts| counts.returned == 1).await;
    assert!(runs.is_empty());
    b.advance(i64::try_from(LONG.as_secs()).expect("it is a day"));
    rig.pass_time_until(runs.next()).await.complete();
    there.until(|counts| counts.handled == 1).await;
    there.stop().await;
}

async fn a_claim_is_given_up_with_the_delivery(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let mut here = start(rig.subscribe(b.builder().handler(handler.clone())).dedup(claiming()));
    rig.publish([sent("m1", 1)]).await;
    let run = runs.next().await;
    here.begin_stop();
    run.context.cancellation().cancelled().await;
    run.end(Verdict::from(HandlerError::retryable("stopping")));
    here.stop().await;
    let there = start(rig.subscribe(rig.elsewhere().handler(handler)).dedup(claiming()));
    runs.next().await.complete();
    there.until(|counts| counts.handled == 1).await;
    there.stop().await;
}

async fn a_claim_that_is_lost_stops_its_handler(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let short = Deduplication::new().claim(Duration::from_millis(150));
    let here = start(rig.subscribe(b.builder().handler(handler)).dedup(short));
    rig.publish([sent("m1", 1)]).await;
    let run = runs.next().await;
    b.tap.fail(Call::ClaimDelivery, StoreErrorKind::Unavailable);
    assert_eq!(run.context.cancellation().cancelled().await, CancelCause::LeaseLost);
    // It is done all the same: success counts, whoever has claimed it.
    run.complete();
    here.until(|counts| counts.handled == 1).await;
    here.stop().await;
}

fn writing(message_id: &str, note: &str) -> BrokerMessage {
    BrokerMessage { payload: encoded(&noted(note)), ..sent(message_id, 1) }
}

async fn in_its_transaction_a_handler_takes_effect_once(b: &Bench) {
    let rig = rig(b);
    let transactions = b.transactions.as_ref().expect("the case needs transactions");
    let succeeds: Body = Arc::new(|_, _| Box::pin(async { Verdict::complete() }));
    let here = start(rig.recognising(transactions.handler(b.builder(), Arc::clone(&succeeds))));
    let there = start(rig.recognising(transactions.handler(rig.elsewhere(), succeeds)));
    for round in 0..10 {
        let copy = || writing(&round.to_string(), "paid");
        rig.publish([copy(), copy(), copy()]).await;
    }
    let (mut first, mut second) = (here.watch(), there.watch());
    let done = || {
        let (here, there) = (here.counts(), there.counts());
        (here.handled + there.handled, here.duplicates + there.duplicates)
    };
    while done() != (10, 20) {
        tokio::select! {
            changed = first.changed() => fine(changed),
            changed = second.changed() => fine(changed),
        }
    }
    here.stop().await;
    there.stop().await;
    assert_eq!(transactions.effects().await, ["paid"; 10]);
}

async fn the_transaction_of_a_failing_handler_is_undone(b: &Bench) {
    let rig = rig(b);
    let transactions = b.transactions.as_ref().expect("the case needs transactions");
    let fails: Body = Arc::new(|_, _| Box::pin(async { HandlerError::permanent("closed").into() }));
    let subscriber = start(rig.recognising(transactions.handler(b.builder(), fails)));
    rig.publish([writing("m1", "paid")]).await;
    subscriber.until(|counts| counts.dead_lettered == 1).await;
    subscriber.stop().await;
    assert_eq!(transactions.effects().await, Vec::<String>::new());
}
