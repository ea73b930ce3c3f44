//! What is no message, and what is no ordinary one.

use super::super::bench::{Bench, fail, fine, succeed};
use super::super::tap::Call;
use super::order::Plain;
use super::{QUEUE, rig, sent, sent_in, start};
use mailslot_core::broker::{BrokerMessage, BrokerSettlement, CONTRACT_HEADER, NativeMapping, Receiver as _};
use mailslot_core::store::Filter;
use mailslot_core::{Contract, Reason, Status, StoreErrorKind};
use mailslot_engine::{Deduplication, HEARTBEAT_CONTRACT, REJECTED_CONTRACT};
use std::collections::BTreeMap;

cases![
    what_names_no_contract_is_a_dead_letter_of_the_broker,
    what_cannot_be_read_is_kept_where_the_broker_keeps_no_dead_letters,
    a_mapping_can_name_the_contract,
    a_heartbeat_is_answered_before_anything_is_asked,
    a_heartbeat_that_nobody_can_answer_is_counted,
];

async fn what_names_no_contract_is_a_dead_letter_of_the_broker(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    let nameless = BrokerMessage { headers: BTreeMap::new(), ..sent_in("s", "m1", 1) };
    rig.publish([nameless.clone(), sent_in("s", "m2", 2)]).await;
    subscriber.until(|counts| counts.unreadable == 1 && counts.handled == 1).await;
    subscriber.stop().await;
    let [(message, reason)] = &rig.broker.dead_letters(QUEUE)[..] else { panic!("one dead letter") };
    assert_eq!(message, &nameless);
    assert!(reason.starts_with("unreadable: ") && reason.contains(CONTRACT_HEADER), "{reason}");
    assert_eq!(b.find(Filter::default()).await, []);
}

async fn what_cannot_be_read_is_kept_where_the_broker_keeps_no_dead_letters(b: &Bench) {
    let rig = rig(b);
    let inbox = b.builder().handler(succeed).subscribe(Plain(rig.receiver()));
    let subscriber = start(inbox.dedup(Deduplication::new()));
    let nameless =
        BrokerMessage { headers: BTreeMap::new(), payload: "content".into(), ..sent_in("s", "m1", 1) };
    rig.publish([nameless.clone(), nameless]).await;
    let counts = subscriber.until(|counts| counts.unreadable == 1 && counts.known == 1).await;
    assert_eq!(counts.returned, 0);
    subscriber.stop().await;
    let [id] = b.find(Filter::default()).await[..] else { panic!("one is kept") };
    assert_eq!(b.end(id).await, (Status::DeadLettered, Some(Reason::Undecodable)));
    let envelope = b.record(id).await.envelope;
    assert_eq!((envelope.contract.name(), envelope.session), (REJECTED_CONTRACT, None));
    assert_eq!(envelope.payload.bytes(), "content");
}

async fn a_mapping_can_name_the_contract(b: &Bench) {
    let rig = rig(b);
    let mapping = NativeMapping::contract(fine(Contract::new("order", 1)));
    let subscriber = start(rig.recognising(b.builder().handler(succeed)).mapping(mapping));
    rig.publish([BrokerMessage { headers: BTreeMap::new(), ..sent("m1", 1) }]).await;
    subscriber.until(|counts| counts.handled == 1).await;
    subscriber.stop().await;
}

fn probe(reply_to: Option<&str>) -> BrokerMessage {
    let contract = format!("{HEARTBEAT_CONTRACT}@1");
    BrokerMessage {
        message_id: Some("probe 1".to_owned()),
        session: Some("s".to_owned()),
        reply_to: reply_to.map(str::to_owned),
        headers: BTreeMap::from([(CONTRACT_HEADER.to_owned(), contract)]),
        ..BrokerMessage::default()
    }
}

async fn a_heartbeat_is_answered_before_anything_is_asked(b: &Bench) {
    let rig = rig(b);
    let inbox = rig.recognising(b.builder().handler(fail));
    let subscriber = start(inbox.answer_by(rig.broker.publisher()));
    rig.publish([sent_in("s", "m1", 1)]).await;
    subscriber.until(|counts| counts.retried == 1).await;
    b.tap.fail(Call::LookUp, StoreErrorKind::Unavailable);
    for _ in 0..2 {
        rig.publish([probe(Some("answers"))]).await;
        let answers = rig.broker.receiver("answers");
        let delivery = fine(answers.receive(1).await).remove(0);
        answers.settle(vec![(delivery.tag, BrokerSettlement::Ack)]).await.into_iter().for_each(fine);
        let answer = delivery.message;
        assert_eq!(answer.correlation_id.as_deref(), Some("probe 1"));
        assert_eq!(answer.headers[CONTRACT_HEADER], "mailslot.heartbeat-answer@1");
        assert_eq!(answer.payload, r#"{"endpoint":"default"}"#);
    }
    let counts = subscriber.until(|counts| counts.heartbeats == 2).await;
    assert_eq!((counts.duplicates, counts.store_errors), (0, 0), "a probe is never known");
    subscriber.stop().await;
}

async fn a_heartbeat_that_nobody_can_answer_is_counted(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    rig.publish([probe(None), probe(Some("answers"))]).await;
    subscriber.until(|counts| counts.heartbeats == 2).await;
    subscriber.stop().await;
    assert_eq!((rig.depth(), rig.broker.depth("answers")), (0, 0));
}
