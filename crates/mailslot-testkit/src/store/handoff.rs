//! Handoffs: work that goes on elsewhere and is settled from outside.

use super::Fixture;
use super::verbs::{claim, done, ids, order};
use crate::message::message;
use mailslot_core::store::{Change, Filter, HandoffResult};
use mailslot_core::{ErrorText, MessageId, OutcomeKind, Reason, Status};
use std::time::Duration;

cases![
    a_suspended_message_is_not_leased_and_does_not_run_out,
    a_handoff_that_succeeded_completes_its_message,
    a_handoff_that_failed_dead_letters_its_message,
    a_handoff_is_settled_once,
    only_a_suspended_message_has_a_handoff_to_settle,
    a_cancel_ends_a_handoff,
    a_failed_handoff_can_be_requeued,
    a_handoff_is_settled_where_tenants_share_the_id,
    a_settlement_that_comes_too_early_is_kept_and_applied,
    a_later_settlement_replaces_one_that_is_kept,
    a_kept_settlement_is_forgotten_in_time,
    at_most_as_many_kept_settlements_are_applied_as_asked_for,
    a_kept_settlement_lets_its_session_go_on,
];

fn failed() -> HandoffResult {
    HandoffResult::Failed(ErrorText::new("the bank refused"))
}

async fn settle(fx: &Fixture, id: MessageId, result: HandoffResult) -> bool {
    done(fx.store.settle_handoff(id, result).await)
}

async fn a_suspended_message_is_not_leased_and_does_not_run_out(fx: &Fixture) {
    let suspended = fx.place(order(), Status::Suspended).await;
    fx.advance(365 * 24 * 3_600);
    fx.recover().await;
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(fx.status(suspended.id).await, Status::Suspended);
    assert_eq!(done(fx.store.leases(10).await), []);
}

async fn a_handoff_that_succeeded_completes_its_message(fx: &Fixture) {
    let id = fx.place(order(), Status::Suspended).await.id;
    fx.advance(60);
    assert!(settle(fx, id, HandoffResult::Completed).await);
    let detail = fx.detail(id).await;
    assert_eq!((detail.record.status, detail.record.ended_at), (Status::Completed, Some(fx.now())));
    assert_eq!((detail.record.reason, detail.record.handoff), (None, None));
    let kinds: Vec<_> = detail.history.iter().map(|outcome| outcome.kind).collect();
    assert_eq!(kinds, [OutcomeKind::Suspended, OutcomeKind::Completed]);
}

async fn a_handoff_that_failed_dead_letters_its_message(fx: &Fixture) {
    let id = fx.place(order(), Status::Suspended).await.id;
    assert!(settle(fx, id, failed()).await);
    let record = fx.record(id).await;
    assert_eq!((record.status, record.reason), (Status::DeadLettered, Some(Reason::HandoffFailed)));
    assert_eq!(record.error.expect("kept").as_str(), "the bank refused");
}

async fn a_handoff_is_settled_once(fx: &Fixture) {
    let id = fx.place(order(), Status::Suspended).await.id;
    assert!(settle(fx, id, HandoffResult::Completed).await);
    assert!(!settle(fx, id, failed()).await);
    assert_eq!(fx.status(id).await, Status::Completed);
}

async fn only_a_suspended_message_has_a_handoff_to_settle(fx: &Fixture) {
    for &status in Status::ALL.iter().filter(|status| **status != Status::Suspended) {
        let id = fx.place(message(&format!("order-{status}")), status).await.id;
        let before = fx.detail(id).await;
        assert!(!settle(fx, id, HandoffResult::Completed).await, "{status}");
        assert!(!settle(fx, id, failed()).await, "{status}");
        assert_eq!(fx.detail(id).await, before);
    }
    assert!(!settle(fx, MessageId::generate(), HandoffResult::Completed).await);
}

async fn a_cancel_ends_a_handoff(fx: &Fixture) {
    let id = fx.place(order(), Status::Suspended).await.id;
    assert_eq!(fx.change(Change::Cancel, [id]).await, 1);
    assert!(!settle(fx, id, HandoffResult::Completed).await);
    assert_eq!(fx.status(id).await, Status::Cancelled);
}

async fn a_failed_handoff_can_be_requeued(fx: &Fixture) {
    let id = fx.place(order(), Status::Suspended).await.id;
    settle(fx, id, failed()).await;
    fx.change(Change::Requeue, [id]).await;
    assert_eq!(ids(&fx.claim(claim("order")).await.leased), [id]);
}

async fn a_handoff_is_settled_where_tenants_share_the_id(fx: &Fixture) {
    let id = MessageId::generate();
    fx.accept(order().id(id).tenant("acme")).await;
    fx.accept(order().id(id).tenant("umbrella")).await;
    let leased = fx.claim(claim("order").of_tenant("umbrella")).await.leased;
    fx.suspend(&leased[0]).await;
    assert!(settle(fx, id, HandoffResult::Completed).await);
    assert!(!settle(fx, id, HandoffResult::Completed).await);
    let completed = Filter { statuses: Some(vec![Status::Completed]), ..Filter::default() };
    let completed = done(super::every_record(&*fx.store, &completed).await);
    assert_eq!(completed.len(), 1);
    assert_eq!(completed[0].envelope.tenant.as_ref().map(AsRef::as_ref), Some("umbrella"));
}

const HOUR: Duration = Duration::from_secs(3_600);

async fn keep(fx: &Fixture, id: MessageId, result: HandoffResult) {
    assert!(done(fx.store.keep_handoff(id, result, HOUR).await));
}

async fn apply(fx: &Fixture) -> u64 {
    done(fx.store.apply_kept_handoffs(10).await)
}

async fn a_settlement_that_comes_too_early_is_kept_and_applied(fx: &Fixture) {
    let [first, second] = [MessageId::generate(), MessageId::generate()];
    keep(fx, first, HandoffResult::Completed).await;
    keep(fx, second, failed()).await;
    assert_eq!(apply(fx).await, 0, "nobody is suspended yet");
    fx.accept(order().id(first)).await;
    fx.accept(order().id(second)).await;
    assert_eq!(apply(fx).await, 0);
    for leased in fx.claim(claim("order")).await.leased {
        fx.suspend(&leased).await;
    }
    assert_eq!(apply(fx).await, 2);
    assert_eq!(apply(fx).await, 0);
    assert_eq!(fx.status(first).await, Status::Completed);
    let record = fx.record(second).await;
    assert_eq!((record.status, record.reason), (Status::DeadLettered, Some(Reason::HandoffFailed)));
    assert_eq!(record.error.expect("kept").as_str(), "the bank refused");
}

async fn a_later_settlement_replaces_one_that_is_kept(fx: &Fixture) {
    let id = fx.place(order(), Status::Suspended).await.id;
    keep(fx, id, failed()).await;
    keep(fx, id, HandoffResult::Completed).await;
    assert_eq!(apply(fx).await, 1);
    assert_eq!(fx.status(id).await, Status::Completed);
}

async fn a_kept_settlement_is_forgotten_in_time(fx: &Fixture) {
    let id = MessageId::generate();
    keep(fx, id, HandoffResult::Completed).await;
    fx.advance(3_601);
    assert_eq!(apply(fx).await, 0);
    fx.accept(order().id(id)).await;
    let leased = fx.claim(claim("order")).await.leased;
    fx.suspend(&leased[0]).await;
    assert_eq!(apply(fx).await, 0);
    assert_eq!(fx.status(id).await, Status::Suspended);
}

async fn at_most_as_many_kept_settlements_are_applied_as_asked_for(fx: &Fixture) {
    for _ in 0..3 {
        let id = fx.place(order(), Status::Suspended).await.id;
        keep(fx, id, HandoffResult::Completed).await;
    }
    let apply = async |limit| done(fx.store.apply_kept_handoffs(limit).await);
    assert_eq!([apply(2).await, apply(2).await, apply(2).await], [2, 1, 0]);
}

async fn a_kept_settlement_lets_its_session_go_on(fx: &Fixture) {
    let head = fx.accept(order().session("s")).await.id;
    let next = fx.accept(order().session("s")).await.id;
    keep(fx, head, HandoffResult::Completed).await;
    let leased = fx.claim(claim("order")).await.leased;
    fx.suspend(&leased[0]).await;
    assert_eq!(fx.status(next).await, Status::Parked);
    assert_eq!(apply(fx).await, 1);
    assert_eq!(fx.status(next).await, Status::Pending);
}
