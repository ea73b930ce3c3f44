//! Accepting: answers, refusals, batches.

use super::bench::{Bench, accepted, fine, start, succeed};
use super::script::{Order, Refund, order};
use super::tap::TapStore;
use crate::message::message;
use jiff::SignedDuration;
use mailslot_core::limits::{
    APPEND_BATCH_MAX, DUE_IN_MAX, ENDPOINT_UNITS_MAX, NAME_UNITS_MAX, PAYLOAD_BYTES_MAX,
};
use mailslot_core::store::{Filter, PageRequest};
use mailslot_core::{AcceptOutcome, NewMessage, OnConflict, Status, Visibility};
use mailslot_engine::{Accept, AcceptError, BackPressure, Inbox};
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;

cases![
    an_accept_is_new_known_or_in_conflict,
    a_known_key_tells_where_its_message_stands,
    a_conflict_answers_with_the_first_receipt_on_request,
    of_concurrent_accepts_of_one_key_one_is_new,
    a_contract_that_is_not_registered_is_refused,
    a_contract_is_accepted_without_a_handler_if_it_is_registered,
    a_value_out_of_bounds_is_refused_by_name,
    the_first_value_out_of_bounds_is_the_one_that_is_named,
    the_largest_payload_is_accepted_and_one_byte_more_is_not,
    a_batch_is_stored_in_order,
    an_empty_batch_stores_nothing,
    a_conflict_in_a_batch_keeps_all_of_it_out_and_is_named_by_its_index,
    an_unknown_contract_in_a_batch_is_named_by_its_index,
    a_delay_out_of_bounds_in_a_batch_is_named_by_its_index,
    a_batch_that_is_too_large_is_refused,
    accepts_wait_while_messages_wait_too_long,
    an_accept_that_waits_goes_on_when_the_workers_caught_up,
];

fn under_pressure(b: &Bench, max_wait: Duration) -> Inbox<TapStore> {
    let policy = BackPressure { max_wait, ..BackPressure::max_age(Duration::from_secs(5)) };
    fine(b.builder().handler(succeed).back_pressure(policy).build())
}

async fn accepts_wait_while_messages_wait_too_long(b: &Bench) {
    let inbox = inbox(b);
    fine(inbox.accept(&order(1)).await);
    b.clock.advance(SignedDuration::from_secs(20));
    let refused = under_pressure(b, Duration::from_millis(10)).accept(&order(2)).await;
    let Err(error @ AcceptError::Overloaded { age, retry_after }) = refused else { panic!("{refused:?}") };
    assert_eq!((age, retry_after), (Duration::from_secs(20), Duration::from_secs(15)));
    assert!(error.is_transient());
    fine(inbox.accept(&order(3)).await);
    let stored = fine(inbox.operator().query(&Filter::default(), &PageRequest::default()).await);
    assert_eq!(stored.items.len(), 2, "what was refused is not stored");
}

async fn an_accept_that_waits_goes_on_when_the_workers_caught_up(b: &Bench) {
    fine(inbox(b).accept(&order(1)).await);
    b.clock.advance(SignedDuration::from_secs(20));
    let waits = under_pressure(b, Duration::from_secs(3600));
    let waiting = tokio::spawn(async move { waits.accept(&order(2)).await });
    let worker = start(b.builder().handler(succeed));
    fine(fine(waiting.await));
    worker.stop().await;
}

/// An inbox that accepts orders and does not run.
fn inbox(b: &Bench) -> Inbox<TapStore> {
    fine(b.builder().handler(succeed).build())
}

async fn an_accept_is_new_known_or_in_conflict(b: &Bench) {
    let inbox = inbox(b);
    let first = fine(inbox.accept(&order(1)).idempotency_key("k").await);
    let second = fine(inbox.accept(&order(1)).idempotency_key("k").await);
    let third = inbox.accept(&order(2)).idempotency_key("k").await;
    assert_eq!(first.outcome, AcceptOutcome::Accepted);
    assert_eq!(second.outcome, AcceptOutcome::AlreadyAccepted { status: Status::Pending });
    assert_eq!((second.id, second.accepted_at), (first.id, first.accepted_at));
    let Err(AcceptError::Conflict { first: id, field }) = third else {
        panic!("expected a conflict: {third:?}")
    };
    assert_eq!((id, field), (first.id, "idempotency_key"));
    let stats = inbox.stats();
    assert_eq!((stats.accepted, stats.duplicates, stats.refused_accepts), (1, 1, 1));
}

async fn a_known_key_tells_where_its_message_stands(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    fine(worker.accept(&order(1)).idempotency_key("k").await);
    worker.until(|stats| stats.completed == 1).await;
    let again = fine(worker.accept(&order(1)).idempotency_key("k").await);
    assert_eq!(again.outcome, AcceptOutcome::AlreadyAccepted { status: Status::Completed });
    assert_eq!(worker.stop().await.started, 1);
}

async fn a_conflict_answers_with_the_first_receipt_on_request(b: &Bench) {
    let inbox = inbox(b);
    let first = fine(inbox.accept(&order(1)).idempotency_key("k").await);
    let other = inbox.accept(&order(2)).idempotency_key("k").on_conflict(OnConflict::ReturnFirst);
    assert_eq!(fine(other.await).id, first.id);
}

async fn of_concurrent_accepts_of_one_key_one_is_new(b: &Bench) {
    let (inbox, barrier) = (inbox(b), Arc::new(Barrier::new(64)));
    let accept = |_| {
        let (inbox, barrier) = (inbox.clone(), Arc::clone(&barrier));
        tokio::spawn(async move {
            barrier.wait().await;
            fine(inbox.accept(&order(1)).idempotency_key("k").await)
        })
    };
    let accepting: Vec<_> = (0..64).map(accept).collect();
    let mut receipts = Vec::new();
    for accepted in accepting {
        receipts.push(fine(accepted.await));
    }
    assert_eq!(receipts.iter().filter(|receipt| receipt.is_new()).count(), 1);
    assert!(receipts.iter().all(|receipt| receipt.id == receipts[0].id));
    assert_eq!(b.find(Filter::default()).await, [receipts[0].id]);
}

async fn a_contract_that_is_not_registered_is_refused(b: &Bench) {
    let refused = inbox(b).accept(&Refund { number: 1 }).await;
    let Err(error @ AcceptError::UnknownContract { .. }) = refused else { panic!("accepted: {refused:?}") };
    assert!(error.to_string().contains("refund@1"), "{error} names the contract");
    assert!(error.to_string().contains(".contract::<T>()"), "{error} names the fix");
    assert_eq!(b.find(Filter::default()).await, []);
}

async fn a_contract_is_accepted_without_a_handler_if_it_is_registered(b: &Bench) {
    let named = fine(b.builder().contract::<Refund>().build());
    let any = fine(b.builder().accept_any_contract().build());
    let first = fine(named.accept(&Refund { number: 1 }).await);
    let second = fine(any.accept(&Refund { number: 2 }).await);
    assert_eq!(b.find(Filter::default()).await, [first.id, second.id]);
}

async fn a_value_out_of_bounds_is_refused_by_name(b: &Bench) {
    let inbox = inbox(b);
    let long = "x".repeat(NAME_UNITS_MAX + 1);
    let after = |seconds| Visibility::After(SignedDuration::from_secs(seconds));
    let ten_years = i64::try_from(DUE_IN_MAX.as_secs()).expect("ten years fit");
    let accept = || inbox.accept(&order(1));
    refused("idempotency_key", accept().idempotency_key(" ")).await;
    refused("idempotency_key", accept().idempotency_key(&long)).await;
    refused("tenant", accept().tenant("")).await;
    refused("tenant", accept().tenant(&long)).await;
    refused("session", accept().session("\t")).await;
    refused("session", accept().session(&long)).await;
    refused("endpoint", accept().endpoint("")).await;
    refused("endpoint", accept().endpoint("x".repeat(ENDPOINT_UNITS_MAX + 1))).await;
    refused("correlation", accept().correlation("")).await;
    refused("causation", accept().causation("c")).await;
    refused("due_in", accept().visibility(after(-1))).await;
    refused("due_in", accept().due_in(Duration::MAX)).await;
    refused("due", accept().visibility(after(ten_years + 1))).await;
    refused("traceparent", accept().trace("00-1-2-03", None)).await;
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    refused("tracestate", accept().trace(traceparent, Some("no pairs".into()))).await;
    refused("headers", accept().header("", "value")).await;
    refused("id", accept().id(uuid::Uuid::nil())).await;
    assert_eq!(b.find(Filter::default()).await, []);
}

async fn refused<'a, T>(field: &str, accept: Accept<'a, T>)
where
    Accept<'a, T>: IntoFuture<Output = Result<mailslot_core::Receipt, AcceptError>>,
{
    match accept.await {
        Err(AcceptError::Field(error)) => assert_eq!(error.field(), field, "{error}"),
        other => panic!("`{field}` was not refused: {other:?}"),
    }
}

async fn the_first_value_out_of_bounds_is_the_one_that_is_named(b: &Bench) {
    refused("tenant", inbox(b).accept(&order(1)).tenant("").session("")).await;
}

async fn the_largest_payload_is_accepted_and_one_byte_more_is_not(b: &Bench) {
    let inbox = inbox(b);
    let empty = fine(inbox.accept(&order(1)).prepare()).payload.bytes().len();
    let of_size = |bytes: usize| Order { number: 1, note: "x".repeat(bytes - empty) };
    fine(inbox.accept(&of_size(PAYLOAD_BYTES_MAX)).await);
    refused("payload", inbox.accept(&of_size(PAYLOAD_BYTES_MAX + 1))).await;
}

fn prepared(inbox: &Inbox<TapStore>, number: u32) -> NewMessage {
    fine(inbox.accept(&order(number)).prepare())
}

async fn a_batch_is_stored_in_order(b: &Bench) {
    let inbox = inbox(b);
    let receipts = fine(inbox.accept_batch((0..200).map(|number| prepared(&inbox, number)).collect()).await);
    let ids: Vec<_> = receipts.iter().map(|receipt| receipt.id).collect();
    assert_eq!(b.find(Filter::default()).await, ids);
    assert_eq!(inbox.stats().accepted, 200);
}

async fn an_empty_batch_stores_nothing(b: &Bench) {
    assert_eq!(fine(inbox(b).accept_batch(Vec::new()).await), []);
    assert_eq!(b.tap.appends(), Vec::<usize>::new());
}

async fn a_conflict_in_a_batch_keeps_all_of_it_out_and_is_named_by_its_index(b: &Bench) {
    let inbox = inbox(b);
    let first = fine(inbox.accept(&order(1)).idempotency_key("k").await);
    let taken = fine(inbox.accept(&order(2)).idempotency_key("k").prepare());
    let batch = vec![prepared(&inbox, 3), prepared(&inbox, 4), taken, prepared(&inbox, 5)];
    let refused = inbox.accept_batch(batch).await.expect_err("the key is taken");
    assert_eq!(refused.index, 2);
    assert!(matches!(refused.error, AcceptError::Conflict { first: id, .. } if id == first.id));
    assert_eq!(b.find(Filter::default()).await, [first.id]);
}

async fn an_unknown_contract_in_a_batch_is_named_by_its_index(b: &Bench) {
    let inbox = inbox(b);
    let batch = vec![prepared(&inbox, 1), message("refund").build()];
    let refused = inbox.accept_batch(batch).await.expect_err("refunds are not registered");
    assert_eq!(refused.index, 1);
    assert!(matches!(refused.error, AcceptError::UnknownContract { .. }));
    assert_eq!(b.find(Filter::default()).await, []);
}

async fn a_delay_out_of_bounds_in_a_batch_is_named_by_its_index(b: &Bench) {
    let inbox = inbox(b);
    let batch = vec![prepared(&inbox, 1), message("order").due_in(-1).build()];
    let refused = inbox.accept_batch(batch).await.expect_err("a delay is negative");
    assert_eq!(refused.index, 1);
    assert!(matches!(refused.error, AcceptError::Field(error) if error.field() == "due_in"));
    assert_eq!(b.find(Filter::default()).await, []);
}

async fn a_batch_that_is_too_large_is_refused(b: &Bench) {
    let inbox = inbox(b);
    let batch = vec![prepared(&inbox, 1); APPEND_BATCH_MAX + 1];
    let refused = inbox.accept_batch(batch).await.expect_err("the batch is too large");
    assert_eq!(refused.index, APPEND_BATCH_MAX);
    assert!(matches!(refused.error, AcceptError::Field(error) if error.field() == "batch"));
    accepted(&inbox, 1).await;
}
