//! Requeueing: dead letters get another life; what ended well or still runs does not.

use super::Fixture;
use super::verbs::{claim, done, ids, order, retry_in};
use crate::message::message;
use mailslot_core::store::{Change, Filter, Settled};
use mailslot_core::{Attempt, OutcomeKind, Reason, Status};

cases![
    only_a_dead_letter_can_be_requeued,
    only_a_dead_letter_can_be_skipped_by_an_operator,
    a_requeued_message_has_fresh_attempts_in_a_new_generation,
    a_requeued_message_is_due_at_once,
    a_requeue_is_recorded,
    a_skip_by_an_operator_is_recorded,
    a_requeue_takes_the_oldest_first_up_to_its_limit,
    a_message_can_be_requeued_again_and_again,
    a_stale_worker_changes_nothing_after_a_requeue,
    a_requeued_message_keeps_its_place_in_acceptance_order,
];

async fn check_only_dead_letters(fx: &Fixture, change: Change, becomes: Status) {
    for &status in Status::ALL {
        let id = fx.place(message(&format!("order-{status}")), status).await.id;
        let before = fx.detail(id).await;
        let dead = status == Status::DeadLettered;
        assert_eq!(fx.change(change, [id]).await, u64::from(dead), "{status}");
        let after = fx.detail(id).await;
        if dead {
            assert_eq!(after.record.status, becomes);
        } else {
            assert_eq!(after, before, "{status}");
        }
    }
}

async fn only_a_dead_letter_can_be_requeued(fx: &Fixture) {
    check_only_dead_letters(fx, Change::Requeue, Status::Pending).await;
}

async fn only_a_dead_letter_can_be_skipped_by_an_operator(fx: &Fixture) {
    check_only_dead_letters(fx, Change::Skip, Status::Skipped).await;
}

async fn a_requeued_message_has_fresh_attempts_in_a_new_generation(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    fx.retry(&fx.lease_one().await, 0).await;
    fx.dead_letter(&fx.lease_one().await).await;
    fx.change(Change::Requeue, [id]).await;
    assert_eq!(fx.record(id).await.attempt, Attempt { generation: 1, number: 0 });
    let exchanged = fx.claim(claim("order").attempts(1)).await;
    assert_eq!(exchanged.leased[0].attempt, Attempt { generation: 1, number: 1 });
}

async fn a_requeued_message_is_due_at_once(fx: &Fixture) {
    let id = fx.place(order(), Status::DeadLettered).await.id;
    fx.advance(100);
    fx.change(Change::Requeue, [id]).await;
    let record = fx.record(id).await;
    assert_eq!((record.status, record.due_at, record.ended_at), (Status::Pending, Some(fx.now()), None));
    assert_eq!(fx.lease_one().await.due_at, fx.now());
}

async fn a_requeue_is_recorded(fx: &Fixture) {
    let dead = fx.place(order(), Status::DeadLettered).await;
    fx.advance(5);
    fx.change(Change::Requeue, [dead.id]).await;
    let history = fx.history(dead.id).await;
    assert_eq!(history.len(), 2);
    let requeue = &history[1];
    assert_eq!((requeue.kind, requeue.reason), (OutcomeKind::Requeued, Some(Reason::Operator)));
    // An operator's act belongs to the last attempt before it.
    assert_eq!((requeue.attempt, requeue.at), (dead.lease.expect("it was leased").attempt, fx.now()));
}

async fn a_skip_by_an_operator_is_recorded(fx: &Fixture) {
    let id = fx.place(order(), Status::DeadLettered).await.id;
    fx.advance(5);
    fx.change(Change::Skip, [id]).await;
    let detail = fx.detail(id).await;
    assert_eq!((detail.record.status, detail.record.reason), (Status::Skipped, Some(Reason::Operator)));
    assert_eq!((detail.record.ended_at, detail.record.attempt.generation), (Some(fx.now()), 1));
    let kinds: Vec<_> = detail.history.iter().map(|outcome| outcome.kind).collect();
    assert_eq!(kinds, [OutcomeKind::DeadLettered, OutcomeKind::Skipped]);
}

async fn a_requeue_takes_the_oldest_first_up_to_its_limit(fx: &Fixture) {
    let accepted = fx.accept_all((0..4).map(|_| order())).await;
    for leased in fx.lease(4).await.iter().rev() {
        fx.dead_letter(leased).await;
    }
    assert_eq!(done(fx.store.change(Change::Requeue, &Filter::default(), 3).await).changed, 3);
    assert_eq!(ids(&fx.lease(10).await), accepted[..3]);
    assert_eq!(fx.status(accepted[3]).await, Status::DeadLettered);
}

async fn a_message_can_be_requeued_again_and_again(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    for generation in 0..5 {
        let leased = fx.lease_one().await;
        assert_eq!(leased.attempt, Attempt { generation, number: 1 });
        fx.dead_letter(&leased).await;
        assert_eq!(fx.change(Change::Requeue, [id]).await, 1);
    }
    assert_eq!(fx.history(id).await.len(), 10);
}

async fn a_stale_worker_changes_nothing_after_a_requeue(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let stale = fx.lease_one().await;
    fx.advance(61);
    fx.recover().await;
    fx.dead_letter(&fx.lease_one().await).await;
    fx.change(Change::Requeue, [id]).await;
    let new = fx.lease_one().await;
    let before = fx.detail(id).await;
    assert_eq!(fx.complete(&stale).await, Settled::LeaseLost);
    assert_eq!(fx.settle(&stale, retry_in(5)).await, Settled::LeaseLost);
    assert_eq!(fx.detail(id).await, before);
    assert_eq!(fx.complete(&new).await, Settled::Applied(Status::Completed));
}

async fn a_requeued_message_keeps_its_place_in_acceptance_order(fx: &Fixture) {
    let first = fx.place(order(), Status::DeadLettered).await.id;
    let second = fx.accept(order()).await.id;
    fx.change(Change::Requeue, [first]).await;
    assert_eq!(fx.find(Filter::default()).await, [first, second]);
    assert_eq!(ids(&fx.lease(10).await), [first, second]);
}
