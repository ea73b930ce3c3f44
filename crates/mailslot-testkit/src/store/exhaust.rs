//! A message whose workers keep dying is given up when it would be leased once more.

use super::Fixture;
use super::verbs::{ATTEMPTS, claim, ids, order, owner};
use crate::message::message;
use mailslot_core::store::Change;
use mailslot_core::{Attempt, MessageId, OutcomeKind, Reason, Status};

cases![
    a_message_out_of_attempts_is_dead_lettered_instead_of_leased,
    a_crash_loop_is_bounded,
    exhausted_messages_leave_the_claim_full,
    every_exhausted_message_of_a_batch_is_named,
    only_exhausted_messages_make_an_empty_claim,
    each_lane_has_its_own_bound,
    a_raised_bound_gives_more_attempts,
    a_released_attempt_does_not_count,
    an_exhausted_head_blocks_its_session,
    an_exhausted_message_can_be_requeued,
];

/// Lets the worker of every leased message die.
async fn crash(fx: &Fixture) {
    fx.advance(61);
    fx.recover().await;
}

async fn use_up(fx: &Fixture, attempts: u32) {
    for _ in 0..attempts {
        // Each worker is a new owner, because one holds a single suspect at a time.
        while !fx.claim(claim("order").by(&owner("another"))).await.leased.is_empty() {}
        crash(fx).await;
    }
}

async fn check_crashed(fx: &Fixture, id: MessageId, attempt: Attempt) {
    let detail = fx.detail(id).await;
    assert_eq!((detail.record.status, detail.record.reason), (Status::DeadLettered, Some(Reason::Crashed)));
    assert_eq!(detail.record.attempt, attempt);
    let last = detail.history.last().expect("the end is recorded");
    assert_eq!((last.kind, last.attempt), (OutcomeKind::DeadLettered, attempt));
}

async fn a_message_out_of_attempts_is_dead_lettered_instead_of_leased(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    for _ in 0..2 {
        fx.retry(&fx.lease_one().await, 0).await;
    }
    let exchanged = fx.claim(claim("order").attempts(2)).await;
    assert_eq!((ids(&exchanged.leased), exchanged.refused, exchanged.until), (vec![], vec![id], None));
    check_crashed(fx, id, Attempt { generation: 0, number: 2 }).await;
    assert_eq!(fx.claim(claim("order").attempts(100)).await.leased, []);
}

async fn a_crash_loop_is_bounded(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    use_up(fx, ATTEMPTS).await;
    assert_eq!(fx.status(id).await, Status::Pending);
    assert_eq!(fx.claim(claim("order")).await.refused, [id]);
    let kinds: Vec<_> = fx.history(id).await.into_iter().map(|outcome| outcome.kind).collect();
    let mut expected = vec![OutcomeKind::Expired; ATTEMPTS as usize];
    expected.push(OutcomeKind::DeadLettered);
    assert_eq!(kinds, expected);
}

async fn exhausted_messages_leave_the_claim_full(fx: &Fixture) {
    let poison = fx.accept_all((0..3).map(|_| order())).await;
    use_up(fx, ATTEMPTS).await;
    let good = fx.accept_all((0..4).map(|_| order())).await;
    let exchanged = fx.claim(claim("order").limit(2)).await;
    assert_eq!((ids(&exchanged.leased), exchanged.refused), (good[..2].to_vec(), poison));
    assert_eq!(ids(&fx.lease(2).await), good[2..]);
}

async fn every_exhausted_message_of_a_batch_is_named(fx: &Fixture) {
    let poison = fx.accept_all((0..20).map(|_| order())).await;
    use_up(fx, ATTEMPTS).await;
    let exchanged = fx.claim(claim("order")).await;
    assert_eq!((exchanged.leased, exchanged.refused), (vec![], poison.clone()));
    for id in poison {
        check_crashed(fx, id, Attempt { generation: 0, number: ATTEMPTS }).await;
    }
}

async fn only_exhausted_messages_make_an_empty_claim(fx: &Fixture) {
    fx.accept(order()).await;
    use_up(fx, ATTEMPTS).await;
    let waiting = fx.after(30);
    fx.accept(order().due_in(30)).await;
    let exchanged = fx.claim(claim("order").limit(1)).await;
    assert_eq!((exchanged.leased.len(), exchanged.refused.len()), (0, 1));
    assert_eq!(exchanged.next_due, Some(waiting));
}

async fn each_lane_has_its_own_bound(fx: &Fixture) {
    let strict = fx.accept(message("strict")).await.id;
    let lax = fx.accept(order()).await.id;
    let both = claim("strict").attempts(1).lane("default", "order");
    for leased in fx.claim(both.clone()).await.leased {
        fx.retry(&leased, 0).await;
    }
    let exchanged = fx.claim(both).await;
    assert_eq!((ids(&exchanged.leased), exchanged.refused), (vec![lax], vec![strict]));
}

async fn a_raised_bound_gives_more_attempts(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    use_up(fx, ATTEMPTS).await;
    let leased = fx.claim(claim("order").attempts(ATTEMPTS + 1)).await.leased;
    assert_eq!((ids(&leased), leased[0].attempt.number), (vec![id], ATTEMPTS + 1));
}

async fn a_released_attempt_does_not_count(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    for _ in 0..10 {
        let leased = fx.claim(claim("order").attempts(1)).await.leased;
        assert_eq!((ids(&leased), leased[0].attempt.number), (vec![id], 1));
        fx.release(&leased[0]).await;
    }
    assert_eq!(fx.record(id).await.attempt, Attempt::FIRST);
}

async fn an_exhausted_head_blocks_its_session(fx: &Fixture) {
    let accepted = fx.accept_all((0..2).map(|_| order().session("s"))).await;
    use_up(fx, ATTEMPTS).await;
    assert_eq!(fx.claim(claim("order")).await.refused, [accepted[0]]);
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(fx.statuses([accepted[0], accepted[1]]).await, [Status::DeadLettered, Status::Parked]);
    fx.change(Change::Skip, [accepted[0]]).await;
    assert_eq!(ids(&fx.lease(10).await), [accepted[1]]);
}

async fn an_exhausted_message_can_be_requeued(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    use_up(fx, ATTEMPTS).await;
    fx.claim(claim("order")).await;
    fx.change(Change::Requeue, [id]).await;
    assert_eq!(fx.lease_one().await.attempt, Attempt { generation: 1, number: 1 });
}
