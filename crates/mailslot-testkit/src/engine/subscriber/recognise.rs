//! Recognising what was handled before.

use super::super::bench::{Bench, fine, succeed};
use super::super::script::scripted;
use super::super::tap::Call;
use super::{Rig, Running, rig, sent, start};
use mailslot_core::broker::BrokerMessage;
use mailslot_core::store::Filter;
use mailslot_core::{EndpointName, Status, StoreErrorKind};
use mailslot_engine::Deduplication;
use std::time::Duration;

cases![
    a_redelivery_of_what_was_handled_is_skipped,
    a_fresh_delivery_costs_one_look_up_and_one_record,
    deliveries_at_the_same_time_share_their_calls,
    ids_are_compared_byte_by_byte,
    endpoints_that_share_a_store_stay_apart,
    a_delivery_without_a_usable_id_is_handled_and_touches_no_store,
    without_dedup_nothing_is_looked_up_recorded_or_cleaned_up,
    what_was_recorded_before_a_crash_is_skipped,
    what_was_not_recorded_before_a_crash_is_handled_again,
    a_store_that_fails_is_never_a_duplicate,
    a_record_that_fails_gives_the_delivery_back,
    history_is_kept_where_it_is_wanted,
    old_records_go_and_those_of_others_stay,
    a_cleanup_that_fails_is_tried_again,
];

async fn a_redelivery_of_what_was_handled_is_skipped(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 1).await;
    rig.publish([sent("m1", 1), sent("m1", 1), sent("m2", 2)]).await;
    subscriber.until(|counts| counts.handled == 2 && counts.duplicates == 2).await;
    let counts = subscriber.stop().await;
    assert_eq!((counts.received, counts.returned, rig.depth()), (4, 0, 0));
    assert_eq!(b.find(Filter::default()).await, [], "no message is stored of what was handled on the spot");
}

async fn a_fresh_delivery_costs_one_look_up_and_one_record(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    b.tap.called(Call::LookUp, 1).await;
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 1).await;
    assert_eq!(
        (b.tap.calls(Call::LookUp), b.tap.calls(Call::Conclude)),
        (2, 1),
        "one look-up is the start's"
    );
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.duplicates == 1).await;
    assert_eq!((b.tap.calls(Call::LookUp), b.tap.calls(Call::Conclude)), (3, 1));
    assert_eq!(b.tap.calls(Call::ClaimDelivery), 0);
    subscriber.stop().await;
}

async fn deliveries_at_the_same_time_share_their_calls(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)).concurrency(50));
    rig.publish((0..50).map(|number| sent(&number.to_string(), number))).await;
    for run in runs.take(50).await {
        run.complete();
    }
    subscriber.until(|counts| counts.handled == 50).await;
    assert!(b.tap.calls(Call::LookUp) <= 10, "{} look-ups", b.tap.calls(Call::LookUp));
    assert!(b.tap.calls(Call::Conclude) <= 10, "{} records", b.tap.calls(Call::Conclude));
    subscriber.stop().await;
}

async fn ids_are_compared_byte_by_byte(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    let ids = ["m1", "M1", "m1 ", "\u{e9}", "e\u{301}"];
    rig.publish(ids.map(|id| sent(id, 1))).await;
    subscriber.until(|counts| counts.handled == 5).await;
    rig.publish(ids.map(|id| sent(id, 1))).await;
    subscriber.until(|counts| counts.duplicates == 5).await;
    subscriber.stop().await;
}

async fn endpoints_that_share_a_store_stay_apart(b: &Bench) {
    let rig = rig(b);
    for endpoint in ["billing", "shipping"] {
        let inbox = b.builder().endpoint(endpoint).handler(succeed);
        let subscriber = start(rig.recognising(inbox));
        rig.publish([sent("m1", 1)]).await;
        subscriber.until(|counts| counts.handled == 1).await;
        assert_eq!(subscriber.stop().await.duplicates, 0);
    }
}

async fn a_delivery_without_a_usable_id_is_handled_and_touches_no_store(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    b.tap.called(Call::LookUp, 1).await;
    let long = "x".repeat(513);
    let unusable = [None, Some(""), Some(" \t"), Some(long.as_str())];
    for _ in 0..2 {
        let message = |id: Option<&str>| BrokerMessage { message_id: id.map(str::to_owned), ..sent("", 1) };
        rig.publish(unusable.map(message)).await;
    }
    subscriber.until(|counts| counts.handled == 8).await;
    assert_eq!((b.tap.calls(Call::LookUp), b.tap.calls(Call::Conclude)), (1, 0));
    assert_eq!(subscriber.stop().await.unrecognisable, 8);
}

async fn without_dedup_nothing_is_looked_up_recorded_or_cleaned_up(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.subscribe(b.builder().handler(succeed)));
    rig.publish([sent("m1", 1), sent("m1", 1), sent(" ", 1)]).await;
    let counts = subscriber.until(|counts| counts.handled == 3).await;
    assert_eq!((counts.duplicates, counts.unrecognisable), (0, 0));
    subscriber.stop().await;
    let calls = [Call::LookUp, Call::Conclude, Call::ClaimDelivery, Call::Purge];
    assert_eq!(calls.map(|call| b.tap.calls(call)), [0; 4]);
}

async fn what_was_recorded_before_a_crash_is_skipped(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    let before = b.tap.hold_answers(Call::Conclude);
    rig.publish([sent("m1", 1)]).await;
    b.tap.done_beyond(Call::Conclude, before).await;
    // The store has it, and the broker will never hear of it.
    subscriber.kill().await;
    assert_eq!(rig.depth(), 1);
    let again = start(rig.recognising(rig.elsewhere().handler(succeed)));
    again.until(|counts| counts.duplicates == 1).await;
    assert_eq!((again.stop().await.handled, rig.depth()), (0, 0));
}

async fn what_was_not_recorded_before_a_crash_is_handled_again(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler.clone())));
    rig.publish([sent("m1", 1)]).await;
    let first = runs.next().await;
    subscriber.kill().await;
    drop(first);
    let again = start(rig.recognising(rig.elsewhere().handler(handler)));
    runs.next().await.complete();
    again.until(|counts| counts.handled == 1).await;
    assert_eq!(again.stop().await.duplicates, 0);
}

/// A call of the store fails for a while, and is mended.
async fn fails_for_a_while(b: &Bench, call: Call, rig: &Rig<'_>, subscriber: &Running) {
    b.tap.fail(call, StoreErrorKind::Unavailable);
    rig.publish([sent("m1", 1)]).await;
    rig.pass_time_until(subscriber.until(|counts| counts.returned >= 2)).await;
    assert_eq!((subscriber.counts().handled, subscriber.counts().duplicates), (0, 0));
    b.tap.mend(call);
    rig.pass_time_until(subscriber.until(|counts| counts.handled == 1)).await;
}

async fn a_store_that_fails_is_never_a_duplicate(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    subscriber.is(mailslot_engine::SubscriberState::Receiving).await;
    let failing = fails_for_a_while(b, Call::LookUp, &rig, &subscriber);
    let ((), ()) = tokio::join!(failing, async { runs.next().await.complete() });
    assert!(runs.is_empty(), "the handler did not run while the store was away");
    assert!(subscriber.stop().await.store_errors >= 2);
}

async fn a_record_that_fails_gives_the_delivery_back(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    fails_for_a_while(b, Call::Conclude, &rig, &subscriber).await;
    assert_eq!(subscriber.stop().await.duplicates, 0);
    assert_eq!(rig.depth(), 0);
}

async fn history_is_kept_where_it_is_wanted(b: &Bench) {
    let rig = rig(b);
    let dedup = Deduplication::new().keep_history();
    let subscriber = start(rig.subscribe(b.builder().handler(succeed)).dedup(dedup));
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 1).await;
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.duplicates == 1).await;
    subscriber.stop().await;
    let [id] = b.find(Filter::default()).await[..] else { panic!("one message is kept") };
    assert_eq!(b.end(id).await, (Status::Completed, None));
    assert_eq!(b.outcomes(id).await.len(), 1, "the duplicate adds nothing");
}

async fn old_records_go_and_those_of_others_stay(b: &Bench) {
    let rig = rig(b);
    let day = Duration::from_secs(24 * 3600);
    let dedup = Deduplication::new().retention(day).cleanup_every(Duration::from_millis(20));
    let other = start(rig.recognising(b.builder().endpoint("shipping").handler(succeed)));
    rig.publish([sent("m1", 1)]).await;
    other.until(|counts| counts.handled == 1).await;
    other.stop().await;
    let subscriber = start(rig.subscribe(b.builder().handler(succeed)).dedup(dedup));
    rig.publish([sent("m1", 1), sent("m2", 1)]).await;
    subscriber.until(|counts| counts.handled == 2).await;
    b.advance(25 * 3600);
    subscriber.until(|counts| counts.purged == 2).await;
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 3).await;
    subscriber.stop().await;
    let shipping = fine(EndpointName::new("shipping"));
    assert_eq!(fine(b.store.purge(&shipping, Duration::ZERO, 10).await), 1);
}

async fn a_cleanup_that_fails_is_tried_again(b: &Bench) {
    let rig = rig(b);
    let dedup = Deduplication::new().retention(Duration::from_secs(60)).cleanup_every(super::OFTEN);
    let subscriber = start(rig.subscribe(b.builder().handler(succeed)).dedup(dedup));
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 1).await;
    b.tap.fail(Call::Purge, StoreErrorKind::Unavailable);
    b.advance(3600);
    b.tap.called_again(Call::Purge, 2).await;
    b.tap.mend(Call::Purge);
    subscriber.until(|counts| counts.purged == 1).await;
    subscriber.stop().await;
}
