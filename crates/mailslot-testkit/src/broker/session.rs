//! Sessions: one message of each at a time.

use super::{Opened, RETURN, ack, broker_cases, contents, in_session, receive, settle, text};

broker_cases![
    a_session_hands_out_one_message_at_a_time needs sessions,
    a_session_waits_across_receivers needs sessions,
    a_returned_message_stays_the_first_of_its_session needs sessions,
    a_session_holds_up_no_other_message needs sessions,
];

async fn a_session_hands_out_one_message_at_a_time(opened: &Opened) {
    opened.publish(vec![in_session("s", "1"), in_session("s", "2"), text("other")]).await;
    let receiver = opened.receiver().await;
    let deliveries = receive(&*receiver, 2).await;
    assert_eq!(contents(&deliveries), ["1", "other"]);
    ack(&*receiver, deliveries[0].tag).await;
    assert_eq!(contents(&receive(&*receiver, 1).await), ["2"]);
}

async fn a_session_waits_across_receivers(opened: &Opened) {
    opened.publish(vec![in_session("s", "1"), in_session("s", "2"), in_session("t", "3")]).await;
    let (first, second) = (opened.receiver().await, opened.receiver().await);
    assert_eq!(contents(&receive(&*first, 1).await), ["1"]);
    assert_eq!(contents(&receive(&*second, 1).await), ["3"]);
    drop(first);
    assert_eq!(contents(&receive(&*second, 1).await), ["1"]);
}

async fn a_returned_message_stays_the_first_of_its_session(opened: &Opened) {
    opened.publish(vec![in_session("s", "1"), in_session("s", "2")]).await;
    let receiver = opened.receiver().await;
    let tag = receive(&*receiver, 1).await[0].tag;
    settle(&*receiver, tag, RETURN).await.expect("it is taken back");
    assert_eq!(contents(&receive(&*receiver, 1).await), ["1"]);
}

async fn a_session_holds_up_no_other_message(opened: &Opened) {
    let many = (0..50).map(|number| in_session("s", &number.to_string()));
    opened.publish(many.chain([text("free")]).collect()).await;
    assert_eq!(contents(&receive(&*opened.receiver().await, 2).await), ["0", "free"]);
}
