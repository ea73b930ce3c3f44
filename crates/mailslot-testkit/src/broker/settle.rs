//! Settling.

use super::{LATER, Opened, RETURN, ack, broker_cases, contents, receive, settle, text};
use mailslot_core::broker::{BrokerErrorKind, BrokerSettlement};

broker_cases![
    an_acknowledged_message_is_gone,
    a_returned_message_arrives_again,
    a_message_keeps_its_delivery_id needs stable_delivery_id,
    a_message_can_be_returned_for_later needs delayed_return,
    a_returned_message_counts_its_redeliveries needs redelivery_count,
    what_was_not_settled_arrives_again_after_its_receiver_is_gone,
    a_settlement_counts_once,
    each_settlement_has_its_own_answer,
    a_dead_letter_is_kept_with_its_reason needs dead_letter,
];

async fn an_acknowledged_message_is_gone(opened: &Opened) {
    opened.publish(vec![text("a"), text("b")]).await;
    let receiver = opened.receiver().await;
    let deliveries = receive(&*receiver, 1).await;
    ack(&*receiver, deliveries[0].tag).await;
    drop(receiver);
    assert_eq!(contents(&receive(&*opened.receiver().await, 1).await), ["b"]);
}

async fn a_returned_message_arrives_again(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    let first = receive(&*receiver, 1).await.remove(0);
    settle(&*receiver, first.tag, RETURN).await.expect("it is taken back");
    let second = receive(&*receiver, 1).await.remove(0);
    assert_eq!(second.message, first.message);
    assert_ne!(second.tag, first.tag);
}

async fn a_message_keeps_its_delivery_id(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    let first = receive(&*receiver, 1).await.remove(0);
    settle(&*receiver, first.tag, RETURN).await.expect("it is taken back");
    assert_eq!(receive(&*receiver, 1).await[0].delivery_id, first.delivery_id);
    drop(receiver);
    assert_eq!(receive(&*opened.receiver().await, 1).await[0].delivery_id, first.delivery_id);
}

async fn a_message_can_be_returned_for_later(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    let first = receive(&*receiver, 1).await.remove(0);
    let later = BrokerSettlement::Return { after: LATER };
    settle(&*receiver, first.tag, later).await.expect("it is taken back");
    opened.publish(vec![text("b")]).await;
    assert_eq!(contents(&receive(&*receiver, 1).await), ["b"], "a is not handed out yet");
    (opened.pass)(LATER).await;
    assert_eq!(contents(&receive(&*receiver, 1).await), ["a"]);
}

async fn a_returned_message_counts_its_redeliveries(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    for redeliveries in 0..3 {
        let delivery = receive(&*receiver, 1).await.remove(0);
        assert_eq!(delivery.redeliveries, Some(redeliveries));
        settle(&*receiver, delivery.tag, RETURN).await.expect("it is taken back");
    }
}

async fn what_was_not_settled_arrives_again_after_its_receiver_is_gone(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    let first = receive(&*receiver, 1).await.remove(0);
    drop(receiver);
    let again = receive(&*opened.receiver().await, 1).await.remove(0);
    assert_eq!(again.message, first.message);
}

async fn a_settlement_counts_once(opened: &Opened) {
    opened.publish(vec![text("a")]).await;
    let receiver = opened.receiver().await;
    let tag = receive(&*receiver, 1).await[0].tag;
    ack(&*receiver, tag).await;
    let error = settle(&*receiver, tag, RETURN).await.expect_err("it is settled");
    assert_eq!(error.kind(), BrokerErrorKind::DeliveryLost);
}

async fn each_settlement_has_its_own_answer(opened: &Opened) {
    opened.publish(vec![text("a"), text("b")]).await;
    let receiver = opened.receiver().await;
    let deliveries = receive(&*receiver, 2).await;
    let (first, second) = (deliveries[0].tag, deliveries[1].tag);
    let settlements = [first, first, second].map(|tag| (tag, BrokerSettlement::Ack)).to_vec();
    let taken: Vec<_> = receiver.settle(settlements).await.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, false, true]);
}

async fn a_dead_letter_is_kept_with_its_reason(opened: &Opened) {
    opened.publish(vec![text("poison"), text("b")]).await;
    let receiver = opened.receiver().await;
    let delivery = receive(&*receiver, 1).await.remove(0);
    let dead = BrokerSettlement::DeadLetter { reason: "no contract".into() };
    settle(&*receiver, delivery.tag, dead).await.expect("it is taken");
    assert_eq!((opened.dead_letters)().await, [(text("poison"), "no contract".into())]);
    assert_eq!(contents(&receive(&*receiver, 1).await), ["b"]);
}
