//! Stopping: what runs is finished and settled, what did not start goes back.

use super::super::bench::Bench;
use super::super::script::scripted;
use super::super::tap::Call;
use super::{rig, sent, sent_in, start};
use mailslot_core::store::Filter;
use mailslot_core::{CancelCause, HandlerError, Verdict};
use mailslot_engine::WorkerConfig;
use std::time::Duration;

cases![
    a_stop_lets_handlers_finish_and_settles_them,
    a_stop_gives_back_what_did_not_start,
    a_stop_does_not_interrupt_a_record,
    a_handler_past_the_grace_time_goes_back_unrecorded,
    a_handler_that_gives_up_at_a_stop_goes_back_unrecorded,
    nothing_is_received_after_a_stop,
];

async fn a_stop_lets_handlers_finish_and_settles_them(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let mut subscriber = start(rig.recognising(b.builder().handler(handler)));
    rig.publish([sent("m1", 1)]).await;
    let run = runs.next().await;
    subscriber.begin_stop();
    assert_eq!(run.context.cancellation().cancelled().await, CancelCause::Shutdown);
    run.complete();
    let counts = subscriber.stop().await;
    assert_eq!((counts.handled, counts.returned, rig.depth()), (1, 0, 0));
}

async fn a_stop_gives_back_what_did_not_start(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let mut subscriber = start(rig.recognising(b.builder().handler(handler)).concurrency(1));
    rig.publish((0..5).map(|number| sent(&number.to_string(), number))).await;
    let run = runs.next().await;
    subscriber.until(|counts| counts.received == 5).await;
    subscriber.begin_stop();
    run.context.cancellation().cancelled().await;
    run.complete();
    let counts = subscriber.stop().await;
    assert_eq!((counts.handled, counts.returned, rig.depth()), (1, 4, 4));
    assert!(runs.is_empty());
}

async fn a_stop_does_not_interrupt_a_record(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let mut subscriber = start(rig.recognising(b.builder().handler(handler)));
    b.tap.hold(Call::Conclude);
    rig.publish([sent("m1", 1)]).await;
    runs.next().await.complete();
    b.tap.called(Call::Conclude, 1).await;
    subscriber.begin_stop();
    b.tap.open(Call::Conclude);
    assert_eq!(subscriber.stop().await.handled, 1);
    assert_eq!(rig.depth(), 0);
}

async fn a_handler_past_the_grace_time_goes_back_unrecorded(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let config = WorkerConfig { grace: Duration::from_millis(20), ..WorkerConfig::default() };
    let subscriber = start(rig.recognising(b.builder().handler(handler).worker(config)));
    rig.publish([sent("m1", 1)]).await;
    let mut run = runs.next().await;
    let counts = subscriber.stop().await;
    run.dropped().await;
    assert_eq!((counts.handled, counts.returned, rig.depth()), (0, 1, 1));
    assert_eq!(b.tap.calls(Call::Conclude), 0);
}

async fn a_handler_that_gives_up_at_a_stop_goes_back_unrecorded(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let mut subscriber = start(rig.recognising(b.builder().handler(handler)));
    rig.publish([sent("m1", 1)]).await;
    let run = runs.next().await;
    subscriber.begin_stop();
    run.context.cancellation().cancelled().await;
    run.end(Verdict::from(HandlerError::retryable("stopping")));
    let counts = subscriber.stop().await;
    assert_eq!((counts.retried, counts.returned, rig.depth()), (0, 1, 1));
    assert_eq!(b.find(Filter::default()).await, []);
}

async fn nothing_is_received_after_a_stop(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let mut subscriber = start(rig.recognising(b.builder().handler(handler)));
    rig.publish([sent_in("s", "m1", 1)]).await;
    let run = runs.next().await;
    subscriber.begin_stop();
    run.context.cancellation().cancelled().await;
    rig.publish([sent_in("s", "m2", 2), sent("m3", 3)]).await;
    run.complete();
    let counts = subscriber.stop().await;
    assert_eq!((counts.received, counts.handled, rig.depth()), (1, 1, 2));
}
