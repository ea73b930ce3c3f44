//! Publishing and receiving.

use super::{LATER, Opened, ack, broker_cases, contents, receive, text};
use mailslot_core::broker::{BrokerErrorKind, BrokerMessage};
use std::collections::{BTreeMap, BTreeSet};

broker_cases![
    a_message_arrives_as_it_was_published,
    messages_arrive_in_the_order_of_their_publication,
    a_receiver_waits_for_a_message,
    at_most_as_many_as_asked_for_arrive,
    to_ask_for_none_is_refused,
    receivers_share_the_messages,
    a_wait_that_is_given_up_loses_nothing,
    delivery_ids_differ_between_messages,
    a_message_can_be_due_later needs scheduled,
    a_receiver_opens_again_and_again,
];

async fn a_message_arrives_as_it_was_published(opened: &Opened) {
    let message = BrokerMessage {
        message_id: Some("publisher's id".into()),
        session: Some("session 7".into()),
        content_type: Some("application/json".into()),
        correlation_id: Some("question 7".into()),
        reply_to: Some("answers".into()),
        due: None,
        headers: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "\u{e9}".into())]),
        payload: (0..=u8::MAX).collect::<Vec<_>>().into(),
    };
    opened.publish(vec![message.clone()]).await;
    let deliveries = receive(&*opened.receiver().await, 1).await;
    assert_eq!(deliveries[0].message, message);
    assert_eq!(deliveries[0].destination, opened.destination);
    assert!(matches!(deliveries[0].redeliveries, None | Some(0)));
}

async fn messages_arrive_in_the_order_of_their_publication(opened: &Opened) {
    let names: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    opened.publish(names.iter().map(|name| text(name)).collect()).await;
    assert_eq!(contents(&receive(&*opened.receiver().await, 20).await), names);
}

async fn a_receiver_waits_for_a_message(opened: &Opened) {
    let receiver = opened.receiver().await;
    let (deliveries, ()) = tokio::join!(receive(&*receiver, 1), opened.publish(vec![text("late")]));
    assert_eq!(contents(&deliveries), ["late"]);
}

async fn at_most_as_many_as_asked_for_arrive(opened: &Opened) {
    opened.publish(vec![text("a"), text("b"), text("c")]).await;
    let receiver = opened.receiver().await;
    assert!(receiver.receive(2).await.expect("the broker delivers").len() <= 2);
}

async fn to_ask_for_none_is_refused(opened: &Opened) {
    let error = opened.receiver().await.receive(0).await.expect_err("nothing was asked for");
    assert_eq!(error.kind(), BrokerErrorKind::Invalid);
}

async fn receivers_share_the_messages(opened: &Opened) {
    // Both are there before the messages are, which a broker may send ahead.
    let (first, second) = (opened.receiver().await, opened.receiver().await);
    opened.publish(vec![text("a"), text("b")]).await;
    let (one, other) = tokio::join!(receive(&*first, 1), receive(&*second, 1));
    let all: BTreeSet<_> = contents(&one).into_iter().chain(contents(&other)).collect();
    assert_eq!(all.len(), 2, "no message went to both");
}

async fn a_wait_that_is_given_up_loses_nothing(opened: &Opened) {
    let receiver = opened.receiver().await;
    tokio::select! {
        biased;
        _ = receiver.receive(1) => panic!("there is nothing to receive"),
        () = tokio::task::yield_now() => {}
    }
    opened.publish(vec![text("a")]).await;
    let deliveries = receive(&*receiver, 1).await;
    ack(&*receiver, deliveries[0].tag).await;
    assert_eq!(contents(&deliveries), ["a"]);
}

async fn delivery_ids_differ_between_messages(opened: &Opened) {
    opened.publish(vec![text("same"), text("same")]).await;
    let deliveries = receive(&*opened.receiver().await, 2).await;
    assert_ne!(deliveries[0].delivery_id, deliveries[1].delivery_id);
}

async fn a_message_can_be_due_later(opened: &Opened) {
    let due = Some((opened.now)() + LATER);
    opened.publish(vec![BrokerMessage { due, ..text("later") }, text("now")]).await;
    let receiver = opened.receiver().await;
    let first = receive(&*receiver, 1).await;
    ack(&*receiver, first[0].tag).await;
    assert_eq!(contents(&first), ["now"]);
    (opened.pass)(LATER).await;
    assert_eq!(contents(&receive(&*receiver, 1).await), ["later"]);
}

async fn a_receiver_opens_again_and_again(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    for _ in 0..2 {
        receiver.open().await.expect("the destination is there");
        opened.publisher.open().await.expect("the broker is there");
    }
    assert_eq!(contents(&receive(&*receiver, 1).await), ["a"]);
}
