//! Taking in without handling, and how much is believed of what a publisher wrote.

use super::super::bench::{Bench, builder_on, fine, start as start_worker, succeed};
use super::super::tap::Call;
use super::order::Plain;
use super::{QUEUE, rig, sent, start};
use mailslot_core::broker::BrokerMessage;
use mailslot_core::store::Filter;
use mailslot_core::{FieldError, Priority, StoreErrorKind, TenantName};
use mailslot_engine::{
    BuildError, DUE_HEADER, DUE_IN_HEADER, IdentifyBy, PRIORITY_HEADER, Safety, TENANT_HEADER,
};

cases![
    a_stored_ingress_takes_in_what_any_worker_handles,
    a_lost_acknowledgement_stores_nothing_twice,
    a_store_that_is_away_leaves_everything_to_the_broker,
    headers_decide_nothing_unless_they_are_trusted,
    trusted_headers_decide_and_are_checked,
    what_a_trusted_header_delays_is_stored_until_then,
    a_delivery_can_be_recognised_by_the_brokers_own_id,
    an_id_can_be_demanded,
    what_may_not_come_in_is_a_dead_letter_with_the_reason,
    misuse_of_a_stored_ingress_fails_the_build,
];

async fn a_stored_ingress_takes_in_what_any_worker_handles(b: &Bench) {
    let rig = rig(b);
    // Without a handler: this process only takes in.
    let ingress = start(rig.recognising(b.builder()).stored());
    rig.publish((0..20).map(|number| sent(&number.to_string(), number))).await;
    ingress.until(|counts| counts.deferred == 20).await;
    assert_eq!(ingress.stop().await.handled, 0);
    assert_eq!(rig.depth(), 0);
    assert_eq!(b.find(Filter::default()).await.len(), 20);
    let worker = start_worker(builder_on(b.other_process()).handler(succeed));
    worker.until(|stats| stats.completed == 20).await;
    worker.stop().await;
}

async fn a_lost_acknowledgement_stores_nothing_twice(b: &Bench) {
    let rig = rig(b);
    let ingress = start(rig.recognising(b.builder()).stored());
    let before = b.tap.hold_answers(Call::Conclude);
    rig.publish([sent("m1", 1)]).await;
    b.tap.done_beyond(Call::Conclude, before).await;
    // It is stored, and the broker is gone before it hears of it.
    rig.broker.cut();
    b.tap.open(Call::Conclude);
    ingress.until(|counts| counts.deferred == 1 && counts.broker_errors >= 1).await;
    rig.broker.mend();
    ingress.until(|counts| counts.known == 1).await;
    ingress.stop().await;
    assert_eq!((b.find(Filter::default()).await.len(), rig.depth()), (1, 0));
}

async fn a_store_that_is_away_leaves_everything_to_the_broker(b: &Bench) {
    let rig = rig(b);
    let ingress = start(rig.recognising(b.builder()).stored());
    ingress.is(mailslot_engine::SubscriberState::Receiving).await;
    b.tap.fail(Call::Conclude, StoreErrorKind::NotWritable);
    rig.publish((0..10).map(|number| sent(&number.to_string(), number))).await;
    rig.pass_time_until(ingress.until(|counts| counts.returned >= 10)).await;
    assert_eq!(rig.depth(), 10);
    b.tap.mend(Call::Conclude);
    rig.pass_time_until(ingress.until(|counts| counts.deferred == 10)).await;
    ingress.stop().await;
}

fn with_headers(headers: &[(&str, &str)]) -> BrokerMessage {
    let mut message = sent("m1", 1);
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    message.headers.extend(headers);
    message
}

const CHOSEN: [(&str, &str); 4] = [
    (TENANT_HEADER, "acme"),
    (DUE_IN_HEADER, "3600"),
    // Of the two the delay counts.
    (DUE_HEADER, "2030-01-31T12:00:00Z"),
    (PRIORITY_HEADER, "high"),
];

async fn headers_decide_nothing_unless_they_are_trusted(b: &Bench) {
    let rig = rig(b);
    let ingress = start(rig.recognising(b.builder()).stored());
    rig.publish([with_headers(&CHOSEN)]).await;
    ingress.until(|counts| counts.deferred == 1).await;
    ingress.stop().await;
    let [id] = b.find(Filter::default()).await[..] else { panic!("one is stored") };
    let record = b.record(id).await;
    assert_eq!((record.envelope.tenant, record.envelope.priority), (None, Priority::Normal));
    assert_eq!(record.due_at, Some(fine(b.store.now().await)), "it is due at once");
    assert!(record.envelope.headers.is_empty(), "what is not believed is not passed on");
}

async fn trusted_headers_decide_and_are_checked(b: &Bench) {
    let rig = rig(b);
    let ingress = start(rig.recognising(b.builder()).stored().safety(Safety::new().trust_headers()));
    rig.publish([with_headers(&CHOSEN)]).await;
    ingress.until(|counts| counts.deferred == 1).await;
    for (name, value) in [
        (TENANT_HEADER, " "),
        (DUE_IN_HEADER, "soon"),
        (DUE_HEADER, "tomorrow"),
        (DUE_HEADER, "9999-01-01T00:00:00Z"),
        (PRIORITY_HEADER, "highest"),
    ] {
        rig.publish([with_headers(&[(name, value)])]).await;
    }
    ingress.until(|counts| counts.unreadable == 5).await;
    ingress.stop().await;
    let [id] = b.find(Filter::default()).await[..] else { panic!("one is stored") };
    let record = b.record(id).await;
    assert_eq!(record.envelope.tenant.as_ref().map(TenantName::as_str), Some("acme"));
    assert_eq!(record.envelope.priority, Priority::High);
    let hour = jiff::SignedDuration::from_hours(1);
    assert_eq!(record.due_at, Some(fine(b.store.now().await) + hour));
}

async fn what_a_trusted_header_delays_is_stored_until_then(b: &Bench) {
    let rig = rig(b);
    let inbox = rig.recognising(b.builder().handler(succeed));
    let subscriber = start(inbox.safety(Safety::new().trust_headers()));
    let at = fine(b.store.now().await) + jiff::SignedDuration::from_hours(1);
    rig.publish([with_headers(&[(DUE_HEADER, &at.to_string())])]).await;
    subscriber.until(|counts| counts.deferred == 1).await;
    // What the broker itself has delayed is due when it comes.
    rig.publish([BrokerMessage { due: Some(fine(b.store.now().await)), ..sent("m2", 2) }]).await;
    let counts = subscriber.until(|counts| counts.handled == 1).await;
    assert_eq!(counts.deferred, 1);
    b.advance(3_600);
    subscriber.inbox().wake();
    fine(subscriber.inbox().watch().wait_for(|stats| stats.completed == 1).await);
    subscriber.stop().await;
}

async fn a_delivery_can_be_recognised_by_the_brokers_own_id(b: &Bench) {
    let rig = rig(b);
    let safety = || Safety::new().identify_by(IdentifyBy::DeliveryId);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)).safety(safety()));
    // Two messages with one id of their publisher's are two; one that comes again is one.
    rig.publish([sent("m1", 1), sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 2).await;
    let before = b.tap.hold_answers(Call::Conclude);
    rig.publish([sent("m2", 1)]).await;
    b.tap.done_beyond(Call::Conclude, before).await;
    rig.broker.cut();
    b.tap.open(Call::Conclude);
    subscriber.until(|counts| counts.handled == 3).await;
    rig.broker.mend();
    subscriber.until(|counts| counts.duplicates == 1).await;
    subscriber.stop().await;
    // A broker that gives new ids to the same message cannot be asked for them.
    let plain = b.builder().handler(succeed).subscribe(Plain(rig.receiver())).safety(safety());
    let Err(BuildError::Field(error)) = plain.build() else { panic!("the ids are not kept") };
    assert_eq!(error.field(), "safety.identify_by");
}

async fn an_id_can_be_demanded(b: &Bench) {
    let rig = rig(b);
    let inbox = rig.recognising(b.builder().handler(succeed));
    let subscriber = start(inbox.safety(Safety::new().require_identity()));
    rig.publish([BrokerMessage { message_id: None, ..sent("", 1) }, sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 1 && counts.unreadable == 1).await;
    subscriber.stop().await;
    assert!(rig.broker.dead_letters(QUEUE)[0].1.contains("message_id"));
}

async fn what_may_not_come_in_is_a_dead_letter_with_the_reason(b: &Bench) {
    let rig = rig(b);
    let safety = Safety::new().payload_max(1_000).authorize(|delivery| {
        let knows = delivery.message.headers.get("token").is_some_and(|token| token == "secret");
        let fix = "let the publisher send the token";
        if knows { Ok(()) } else { Err(FieldError::new("token", "is wrong", fix)) }
    });
    let subscriber = start(rig.recognising(b.builder().handler(succeed)).safety(safety));
    let mut large = with_headers(&[("token", "secret")]);
    large.payload = vec![b' '; 1_001].into();
    rig.publish([large, with_headers(&[("token", "guess")]), with_headers(&[("token", "secret")])]).await;
    subscriber.until(|counts| counts.handled == 1 && counts.unreadable == 2).await;
    subscriber.stop().await;
    let reasons: Vec<_> = rig.broker.dead_letters(QUEUE).into_iter().map(|(_, reason)| reason).collect();
    assert!(reasons.iter().any(|reason| reason.contains("1001 bytes")), "{reasons:?}");
    assert!(
        reasons.iter().any(|reason| reason.contains("`token`") && !reason.contains("guess")),
        "{reasons:?}"
    );
}

async fn misuse_of_a_stored_ingress_fails_the_build(b: &Bench) {
    let rig = rig(b);
    let without_dedup = rig.subscribe(b.builder()).stored();
    let no_bytes = rig.recognising(b.builder()).stored().safety(Safety::new().payload_max(0));
    for (builder, field) in [(without_dedup, "dedup"), (no_bytes, "safety.payload_max")] {
        let Err(BuildError::Field(error)) = builder.build() else { panic!("{field} is wrong") };
        assert_eq!(error.field(), field);
    }
}
