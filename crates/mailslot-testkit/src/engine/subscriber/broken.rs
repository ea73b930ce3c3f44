//! What is broken: at build, at start, and while it runs.

use super::super::bench::{Bench, builder_on, fine, succeed};
use super::super::script::scripted;
use super::super::tap::Call;
use super::{rig, sent, sent_in, start};
use mailslot_core::StoreErrorKind;
use mailslot_engine::{BuildError, Deduplication, SubscribeError, SubscriberState};
use std::future::ready;
use std::time::Duration;

cases![
    every_misuse_fails_the_build_and_names_the_fix,
    a_broker_that_is_away_fails_the_start,
    a_store_that_is_away_fails_the_start,
    a_store_whose_look_ups_may_be_stale_is_refused_unless_that_is_allowed,
    a_second_run_is_refused,
    a_broker_that_goes_away_is_waited_for,
    a_store_that_goes_away_leaves_deliveries_to_the_broker,
    a_store_that_fails_in_a_session_lets_nothing_overtake,
];

async fn every_misuse_fails_the_build_and_names_the_fix(b: &Bench) {
    let rig = rig(b);
    let good = || rig.subscribe(b.builder().handler(succeed));
    let dedup = |change: fn(Deduplication) -> Deduplication| good().dedup(change(Deduplication::new()));
    let table = [
        (rig.subscribe(b.builder()), "handler"),
        (good().concurrency(0), "subscriber.concurrency"),
        (good().receive_max(0), "subscriber.receive_max"),
        (good().concurrency(10).hold(9), "subscriber.hold"),
        (good().extend_every(Duration::ZERO), "subscriber.extend_every"),
        (dedup(|dedup| dedup.retention(Duration::ZERO)), "cleanup.retention"),
        (dedup(|dedup| dedup.cleanup_every(Duration::ZERO)), "cleanup.every"),
        (dedup(|dedup| dedup.claim(Duration::ZERO)), "dedup.claim"),
    ];
    for (builder, field) in table {
        let Err(BuildError::Field(error)) = builder.build() else { panic!("{field} is wrong") };
        assert_eq!(error.field(), field);
        assert!(!error.fix().is_empty());
    }
    fine(good().build());
}

async fn a_broker_that_is_away_fails_the_start(b: &Bench) {
    let rig = rig(b);
    let subscriber = fine(rig.recognising(b.builder().handler(succeed)).build());
    rig.broker.cut();
    assert!(matches!(subscriber.run(ready(())).await, Err(SubscribeError::Broker(_))));
    assert_eq!(*subscriber.state().borrow(), SubscriberState::Stopped);
    rig.broker.mend();
    fine(subscriber.run(ready(())).await);
}

async fn a_store_that_is_away_fails_the_start(b: &Bench) {
    let rig = rig(b);
    for (call, builder) in [
        (Call::LookUp, rig.recognising(b.builder().handler(succeed))),
        (Call::Now, rig.subscribe(b.builder().handler(succeed))),
    ] {
        let subscriber = fine(builder.build());
        b.tap.fail(call, StoreErrorKind::Schema);
        assert!(matches!(subscriber.run(ready(())).await, Err(SubscribeError::Store(_))));
        b.tap.mend(call);
        fine(subscriber.run(ready(())).await);
    }
}

async fn a_store_whose_look_ups_may_be_stale_is_refused_unless_that_is_allowed(b: &Bench) {
    let rig = rig(b);
    let stale = b.other_process();
    stale.be_stale();
    let inbox = || builder_on(stale.clone()).handler(succeed);
    let refused = fine(rig.recognising(inbox()).build());
    assert!(matches!(refused.run(ready(())).await, Err(SubscribeError::StaleReads { .. })));
    let allowed = rig.subscribe(inbox()).dedup(Deduplication::new().allow_stale_reads());
    fine(fine(allowed.build()).run(ready(())).await);
    // Who asks nothing gets no stale answer.
    fine(fine(rig.subscribe(inbox()).build()).run(ready(())).await);
}

async fn a_second_run_is_refused(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    subscriber.is(SubscriberState::Receiving).await;
    assert!(matches!(subscriber.run(ready(())).await, Err(SubscribeError::AlreadyRunning)));
    assert_eq!(*subscriber.state().borrow(), SubscriberState::Receiving);
    subscriber.stop().await;
}

async fn a_broker_that_goes_away_is_waited_for(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    subscriber.is(SubscriberState::Receiving).await;
    for number in 0..3 {
        rig.publish([sent(&number.to_string(), number)]).await;
        subscriber.until(|counts| counts.handled == u64::from(number) + 1).await;
        rig.broker.cut();
        subscriber.is(SubscriberState::Reconnecting).await;
        rig.broker.mend();
        subscriber.is(SubscriberState::Receiving).await;
    }
    assert!(subscriber.stop().await.broker_errors >= 3);
}

async fn a_store_that_goes_away_leaves_deliveries_to_the_broker(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    subscriber.is(SubscriberState::Receiving).await;
    b.tap.fail(Call::LookUp, StoreErrorKind::Unavailable);
    rig.publish((0..100).map(|number| sent(&number.to_string(), number))).await;
    rig.pass_time_until(subscriber.is(SubscriberState::Holding)).await;
    assert_eq!(rig.depth(), 100);
    b.tap.mend(Call::LookUp);
    rig.pass_time_until(subscriber.until(|counts| counts.handled == 100)).await;
    assert_eq!((subscriber.stop().await.duplicates, rig.depth()), (0, 0));
}

async fn a_store_that_fails_in_a_session_lets_nothing_overtake(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    subscriber.is(SubscriberState::Receiving).await;
    b.tap.fail(Call::LookUp, StoreErrorKind::Unavailable);
    rig.publish((1..=5).map(|number| sent_in("s", &number.to_string(), number))).await;
    rig.pass_time_until(subscriber.until(|counts| counts.returned >= 3)).await;
    b.tap.mend(Call::LookUp);
    for number in 1..=5 {
        let run = rig.pass_time_until(runs.next()).await;
        assert_eq!(run.order.number, number);
        run.complete();
    }
    subscriber.until(|counts| counts.handled == 5).await;
    subscriber.stop().await;
}
