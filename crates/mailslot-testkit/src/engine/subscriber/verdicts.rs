//! What a handler decides, and what a redelivery finds afterwards.

use super::super::bench::{Bench, RETRY_SECONDS, fine};
use super::super::script::{Order, noted};
use super::{Rig, Running, encoded, rig, sent, start};
use mailslot_core::broker::BrokerMessage;
use mailslot_core::store::{Change, Filter, HandoffResult};
use mailslot_core::{
    Context, CorrelationId, DeliveryIdentity, HandlerError, Handoff, MessageId, OutcomeKind, Reason, Status,
    Verdict,
};
use mailslot_engine::{HandoffSettled, Operator, SubscriberCounts};
use std::time::Duration;

cases![
    each_verdict_has_its_place,
    the_source_of_a_retry_is_known_once_the_retry_succeeds,
    the_source_of_a_resubmission_is_known_once_it_succeeds,
    a_handoff_is_not_recorded_until_it_is_settled,
    a_handoff_that_fails_is_left_to_an_operator,
    a_settlement_that_comes_before_the_handoff_is_applied,
    an_overdue_handoff_is_seen,
    a_stored_message_has_an_id_that_follows_from_its_delivery,
    a_message_that_does_not_decode_is_kept_as_a_dead_letter,
    a_handler_that_panics_is_tried_again,
    a_handler_sees_how_its_message_arrived,
];

async fn by_note(order: Order) -> Result<Verdict, HandlerError> {
    match order.note.as_str() {
        "retry" => Err(HandlerError::retryable("the bank is closed")),
        "dead" => Ok(Verdict::dead_letter("no such account")),
        "permanent" => Err(HandlerError::permanent("no such account")),
        "discard" => Err(HandlerError::discard("too old")),
        "skip" => Ok(Verdict::skip("not ours")),
        "handoff" => Ok(fine(Handoff::new("waits for the bank")).into()),
        "panic" => panic!("the handler is broken"),
        _ => Ok(Verdict::complete()),
    }
}

fn saying(message_id: &str, note: &str) -> BrokerMessage {
    BrokerMessage { payload: encoded(&noted(note)), ..sent(message_id, 1) }
}

fn subscriber(rig: &Rig<'_>) -> Running {
    start(rig.recognising(rig.bench.builder().handler(by_note)))
}

/// The one message that is stored.
async fn stored(b: &Bench) -> MessageId {
    let [id] = b.find(Filter::default()).await[..] else { panic!("one message is stored") };
    id
}

/// Publishes once more what was published before, and waits until it was seen as that.
async fn redeliver(
    rig: &Rig<'_>,
    subscriber: &Running,
    message: BrokerMessage,
    seen: impl FnMut(&SubscriberCounts) -> bool,
) {
    rig.publish([message]).await;
    subscriber.until(seen).await;
}

async fn each_verdict_has_its_place(b: &Bench) {
    let rig = rig(b);
    let subscriber = subscriber(&rig);
    let table = [
        ("retry", Status::Pending, Some(Reason::Failed)),
        ("dead", Status::DeadLettered, Some(Reason::HandlerChoice)),
        ("permanent", Status::DeadLettered, Some(Reason::Permanent)),
        ("discard", Status::Skipped, Some(Reason::Discarded)),
        ("skip", Status::Skipped, Some(Reason::HandlerChoice)),
        ("handoff", Status::Suspended, None),
    ];
    for (note, _, _) in table {
        rig.publish([saying(note, note)]).await;
    }
    let ends = |counts: &SubscriberCounts| {
        [counts.retried, counts.dead_lettered, counts.skipped, counts.suspended] == [1, 2, 2, 1]
    };
    subscriber.until(ends).await;
    for (note, _, _) in table {
        rig.publish([saying(note, note)]).await;
    }
    let counts = subscriber.until(|counts| counts.known == 6).await;
    assert_eq!((counts.handled, counts.duplicates), (0, 0), "none was handled again");
    subscriber.stop().await;
    assert_eq!(rig.depth(), 0);
    let mut found = Vec::new();
    for id in b.find(Filter::default()).await {
        let record = b.record(id).await;
        assert_eq!(record.attempt.number, 1, "the handler's run is the first attempt");
        found.push((record.status, record.reason));
    }
    let key = |(status, reason): &(Status, Option<Reason>)| (*status, *reason);
    let mut expected: Vec<_> = table.map(|(_, status, reason)| (status, reason)).into();
    expected.sort_by_key(key);
    found.sort_by_key(key);
    assert_eq!(found, expected);
}

async fn the_source_of_a_retry_is_known_once_the_retry_succeeds(b: &Bench) {
    let rig = rig(b);
    let second_time = |_: Order, context: Context| async move {
        if context.attempt().number == 1 { Err(HandlerError::retryable("closed")) } else { Ok(()) }
    };
    let subscriber = start(rig.recognising(b.builder().handler(second_time)));
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.retried == 1).await;
    b.advance(RETRY_SECONDS);
    subscriber.inbox().wake();
    fine(subscriber.inbox().watch().wait_for(|stats| stats.completed == 1).await);
    redeliver(&rig, &subscriber, sent("m1", 1), |counts| counts.duplicates == 1).await;
    subscriber.stop().await;
    let id = stored(b).await;
    let expected = [(OutcomeKind::Retried, Some(Reason::Failed)), (OutcomeKind::Completed, None)];
    assert_eq!(b.outcomes(id).await, expected);
}

async fn the_source_of_a_resubmission_is_known_once_it_succeeds(b: &Bench) {
    let rig = rig(b);
    let mended = |_: Order, context: Context| async move {
        match context.attempt().generation {
            0 => Verdict::dead_letter("no such account"),
            _ => Verdict::complete(),
        }
    };
    let subscriber = start(rig.recognising(b.builder().handler(mended)));
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.dead_lettered == 1).await;
    redeliver(&rig, &subscriber, sent("m1", 1), |counts| counts.known == 1).await;
    let id = stored(b).await;
    fine(b.store.change(Change::Requeue, &Filter { ids: Some(vec![id]), ..Filter::default() }, 1).await);
    subscriber.inbox().wake();
    fine(subscriber.inbox().watch().wait_for(|stats| stats.completed == 1).await);
    redeliver(&rig, &subscriber, sent("m1", 1), |counts| counts.duplicates == 1).await;
    subscriber.stop().await;
    assert_eq!(stored(b).await, id);
}

async fn a_handoff_is_not_recorded_until_it_is_settled(b: &Bench) {
    let rig = rig(b);
    let subscriber = subscriber(&rig);
    rig.publish([saying("m1", "handoff")]).await;
    subscriber.until(|counts| counts.suspended == 1).await;
    redeliver(&rig, &subscriber, saying("m1", "handoff"), |counts| counts.known == 1).await;
    assert!(fine(b.store.settle_handoff(stored(b).await, HandoffResult::Completed).await));
    redeliver(&rig, &subscriber, saying("m1", "handoff"), |counts| counts.duplicates == 1).await;
    subscriber.stop().await;
}

async fn a_handoff_that_fails_is_left_to_an_operator(b: &Bench) {
    let rig = rig(b);
    let subscriber = subscriber(&rig);
    rig.publish([saying("m1", "handoff")]).await;
    subscriber.until(|counts| counts.suspended == 1).await;
    let failed = HandoffResult::Failed(mailslot_core::ErrorText::new("the bank refused"));
    assert!(fine(b.store.settle_handoff(stored(b).await, failed).await));
    redeliver(&rig, &subscriber, saying("m1", "handoff"), |counts| counts.known == 1).await;
    subscriber.stop().await;
    assert_eq!(b.end(stored(b).await).await, (Status::DeadLettered, Some(Reason::HandoffFailed)));
}

async fn a_stored_message_has_an_id_that_follows_from_its_delivery(b: &Bench) {
    let rig = rig(b);
    let subscriber = subscriber(&rig);
    rig.publish([saying("m1", "handoff")]).await;
    subscriber.until(|counts| counts.suspended == 1).await;
    subscriber.stop().await;
    assert_eq!(stored(b).await, id_of("m1"));
}

async fn a_message_that_does_not_decode_is_kept_as_a_dead_letter(b: &Bench) {
    let rig = rig(b);
    let subscriber = subscriber(&rig);
    rig.publish([BrokerMessage { payload: "no JSON".into(), ..sent("m1", 1) }]).await;
    subscriber.until(|counts| counts.dead_lettered == 1).await;
    subscriber.stop().await;
    assert_eq!(b.end(stored(b).await).await, (Status::DeadLettered, Some(Reason::Undecodable)));
}

async fn a_handler_that_panics_is_tried_again(b: &Bench) {
    let rig = rig(b);
    let subscriber = subscriber(&rig);
    rig.publish([saying("m1", "panic"), saying("m2", "")]).await;
    subscriber.until(|counts| counts.retried == 1 && counts.handled == 1).await;
    subscriber.stop().await;
    assert_eq!(b.outcomes(stored(b).await).await, [(OutcomeKind::Retried, Some(Reason::Panicked))]);
}

async fn a_handler_sees_how_its_message_arrived(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = super::super::script::scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    let message = BrokerMessage { correlation_id: Some("order 7".to_owned()), ..sent("m1", 1) };
    rig.publish([message]).await;
    let run = runs.next().await;
    let arrived = run.context.arrived().expect("it comes from the broker");
    assert_eq!((arrived.destination.as_str(), arrived.redeliveries), (super::QUEUE, Some(0)));
    assert_eq!(arrived.identity.as_ref().map(DeliveryIdentity::message_id), Some("m1"));
    let envelope = run.context.envelope();
    assert_eq!(envelope.trace.correlation().map(CorrelationId::as_str), Some("order 7"));
    assert_eq!((run.context.attempt().number, run.context.lease().generation), (1, 0));
    run.end(Verdict::from(HandlerError::retryable("closed")));
    subscriber.until(|counts| counts.retried == 1).await;
    b.advance(RETRY_SECONDS);
    subscriber.inbox().wake();
    let again = runs.next().await;
    assert_eq!(again.context.arrived(), None, "it comes out of the store now");
    again.complete();
    fine(subscriber.inbox().watch().wait_for(|stats| stats.completed == 1).await);
    subscriber.stop().await;
}

/// The id of the stored message that a delivery becomes.
fn id_of(message_id: &str) -> MessageId {
    let endpoint = mailslot_core::EndpointName::default();
    fine(DeliveryIdentity::new(&endpoint, Some(message_id))).key().stored_id()
}

async fn a_settlement_that_comes_before_the_handoff_is_applied(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = super::super::script::scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    rig.publish([sent("m1", 1)]).await;
    let run = runs.next().await;
    // The system that was asked is done before the handler has returned.
    let operator = subscriber.inbox().operator();
    let day = Duration::from_secs(24 * 3600);
    let early = || operator.settle_handoff_early(id_of("m1"), HandoffResult::Completed, day);
    assert_eq!(fine(early().await), HandoffSettled::Kept);
    run.end(fine(Handoff::new("waits for the bank")));
    subscriber.until(|counts| counts.suspended == 1).await;
    rig.pass_time_until(async {
        while b.status(id_of("m1")).await != Status::Completed {
            tokio::task::yield_now().await;
        }
    })
    .await;
    redeliver(&rig, &subscriber, sent("m1", 1), |counts| counts.duplicates == 1).await;
    rig.publish([sent("m2", 1)]).await;
    runs.next().await.end(fine(Handoff::new("waits for the bank")));
    subscriber.until(|counts| counts.suspended == 2).await;
    let settled = operator.settle_handoff_early(id_of("m2"), HandoffResult::Completed, day).await;
    assert_eq!(fine(settled), HandoffSettled::Applied);
    subscriber.stop().await;
}

async fn an_overdue_handoff_is_seen(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = super::super::script::scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    let soon = fine(b.store.now().await) + Duration::from_secs(60);
    for (id, expected_by) in [("m1", Some(soon)), ("m2", None), ("m3", Some(soon + Duration::from_secs(60)))]
    {
        rig.publish([sent(id, 1)]).await;
        let handoff = fine(Handoff::new("waits for the bank"));
        runs.next().await.end(Handoff { expected_by, ..handoff });
    }
    subscriber.until(|counts| counts.suspended == 3).await;
    subscriber.stop().await;
    let overdue = async || {
        let found = fine(subscriber_operator(b).overdue_handoffs(10).await);
        found.into_iter().map(|record| record.envelope.id).collect::<Vec<_>>()
    };
    assert_eq!(overdue().await, []);
    b.advance(60);
    assert_eq!(overdue().await, [id_of("m1")]);
    b.advance(60);
    assert_eq!(overdue().await, [id_of("m1"), id_of("m3")]);
}

fn subscriber_operator(b: &Bench) -> Operator {
    Operator::new(b.tap.clone())
}
