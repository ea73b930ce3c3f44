//! What goes in comes back, byte for byte, by every way out.

use super::Fixture;
use super::verbs::{claim, done, every_record, order};
use crate::message::{MessageBuilder, message, valid};
use mailslot_core::store::Filter;
use mailslot_core::{
    CausationId, CorrelationId, Envelope, MessageId, NewMessage, Priority, Trace, TraceContext,
};

cases![
    every_field_reads_back_as_it_was_given,
    a_bare_message_reads_back_with_nothing_set,
    each_form_of_trace_reads_back,
    each_priority_reads_back,
    a_supplied_id_is_kept,
];

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Appends a message and compares what a lease, a query and a get show of it.
pub(super) async fn check_round_trip(fx: &Fixture, builder: MessageBuilder) {
    let lane = super::placed::claim_of(&builder);
    let built = builder.build();
    done(fx.store.append(vec![built.clone().into()]).await);
    let leased = fx.claim(lane).await.leased.pop().expect("it is due");
    check_same(&built, &leased.envelope);
    let detail = fx.detail(built.id).await;
    assert_eq!(detail.record.envelope, leased.envelope);
    let queried = done(every_record(&*fx.store, &Filter::of_ids([built.id])).await);
    assert_eq!(queried, [detail.record]);
    fx.complete(&leased).await;
}

fn check_same(built: &NewMessage, found: &Envelope) {
    let NewMessage { id, contract, payload, metadata, .. } = built;
    assert_eq!((&found.id, &found.contract, &found.payload), (id, contract, payload));
    let found_where = (&found.endpoint, &found.tenant, &found.session);
    assert_eq!(found_where, (&metadata.endpoint, &metadata.tenant, &metadata.session));
    let found_how = (&found.trace, found.priority, &found.headers);
    assert_eq!(found_how, (&metadata.trace, metadata.priority, &metadata.headers));
    let key = match &metadata.idempotency {
        mailslot_core::Idempotency::None => None,
        mailslot_core::Idempotency::Keyed { key, .. } => Some(key),
    };
    assert_eq!(found.idempotency_key.as_ref(), key);
}

async fn every_field_reads_back_as_it_was_given(fx: &Fixture) {
    let context = valid(TraceContext::new(TRACEPARENT, Some("rojo=00f067aa0ba902b7".to_owned())));
    let trace = Trace::Distributed {
        context,
        correlation: Some(valid(CorrelationId::new("order 77"))),
        causation: Some(valid(CausationId::new("click"))),
    };
    let full = message("payments.process@4")
        .id(MessageId::generate())
        .payload(&b"\x00\x01binary\xff"[..])
        .content_type("application/octet-stream; v=1")
        .key("payment:77")
        .tenant("acme")
        .session("account 12")
        .endpoint("billing")
        .priority(Priority::High)
        .header("x-source", "shop")
        .header("empty", "")
        .trace(trace);
    check_round_trip(fx, full).await;
}

async fn a_bare_message_reads_back_with_nothing_set(fx: &Fixture) {
    let id = fx.accept(order().payload("")).await.id;
    let envelope = fx.record(id).await.envelope;
    assert_eq!((envelope.tenant, envelope.session, envelope.idempotency_key), (None, None, None));
    assert_eq!(envelope.trace, Trace::None);
    assert!(envelope.headers.is_empty() && envelope.payload.bytes().is_empty());
    assert_eq!(envelope.priority, Priority::Normal);
}

async fn each_form_of_trace_reads_back(fx: &Fixture) {
    check_round_trip(fx, order()).await;
    check_round_trip(fx, order().correlation("c")).await;
    check_round_trip(fx, order().workflow("c", "cause")).await;
    let contexts = [
        (TRACEPARENT.to_owned(), None),
        (format!("cc{}-what-the-future-holds", &TRACEPARENT[2..]), Some("a=1, b= 2".to_owned())),
    ];
    for (traceparent, state) in contexts {
        let context = valid(TraceContext::new(traceparent, state));
        let trace = Trace::Distributed { context, correlation: None, causation: None };
        check_round_trip(fx, order().trace(trace)).await;
    }
}

async fn each_priority_reads_back(fx: &Fixture) {
    for priority in Priority::ALL {
        check_round_trip(fx, order().priority(priority)).await;
    }
}

async fn a_supplied_id_is_kept(fx: &Fixture) {
    let id = valid("00000000-0000-4000-8000-00000000002a".parse());
    assert_eq!(fx.accept(order().id(id)).await.id, id);
    assert_eq!(fx.claim(claim("order")).await.leased[0].envelope.id, id);
}
