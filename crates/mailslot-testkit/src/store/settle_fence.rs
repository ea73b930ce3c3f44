//! The fence: a settlement that does not hold the message changes nothing.

use super::Fixture;
use super::verbs::{done, order, owner, settlement};
use crate::message::message;
use mailslot_core::store::{Exchange, Settled};
use mailslot_core::{Attempt, Disposition, LeaseToken, Seq, Settlement, Status};
use std::sync::Arc;

cases![
    a_second_settlement_is_lost,
    a_second_settlement_in_the_same_exchange_is_lost,
    another_owner_cannot_settle,
    another_claim_cannot_settle,
    a_claim_that_never_was_cannot_settle,
    a_wrong_attempt_cannot_settle,
    a_message_that_never_was_cannot_be_settled,
    a_purged_message_cannot_be_settled,
    a_lost_settlement_stops_no_other,
    the_verdict_of_an_old_generation_is_lost,
    many_who_settle_at_once_apply_once,
    settlements_and_a_recovery_at_once_lose_nothing,
];

/// Tries a settlement that must change nothing.
async fn check_lost(fx: &Fixture, settlement: Settlement) {
    let before = done(super::every_record(&*fx.store, &mailslot_core::store::Filter::default()).await);
    assert_eq!(fx.exchange(vec![settlement], None).await.settled, [Settled::LeaseLost]);
    let after = done(super::every_record(&*fx.store, &mailslot_core::store::Filter::default()).await);
    assert_eq!(after, before);
}

async fn a_second_settlement_is_lost(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.complete(&leased).await;
    check_lost(fx, settlement(&leased, Disposition::DeadLetter { reason: mailslot_core::Reason::Failed }))
        .await;
    check_lost(fx, settlement(&leased, Disposition::Complete)).await;
    assert_eq!(fx.history(leased.envelope.id).await.len(), 1);
}

async fn a_second_settlement_in_the_same_exchange_is_lost(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    let twice = vec![settlement(&leased, Disposition::Complete), settlement(&leased, Disposition::Release)];
    let answers = fx.exchange(twice, None).await.settled;
    assert_eq!(answers, [Settled::Applied(Status::Completed), Settled::LeaseLost]);
    assert_eq!(fx.history(leased.envelope.id).await.len(), 1);
}

async fn another_owner_cannot_settle(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    // The label is the same: it decides nothing.
    let lease = LeaseToken { owner: owner(fx.owner.label()).session(), ..leased.lease };
    check_lost(fx, Settlement { lease, ..settlement(&leased, Disposition::Complete) }).await;
}

async fn another_claim_cannot_settle(fx: &Fixture) {
    fx.accept_all([order(), order()]).await;
    let first = fx.lease_one().await;
    let second = fx.lease_one().await;
    let crossed = Settlement { lease: second.lease, ..settlement(&first, Disposition::Complete) };
    check_lost(fx, crossed).await;
}

async fn a_claim_that_never_was_cannot_settle(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    for generation in [0, -1, i64::MIN, i64::MAX, leased.lease.generation + 1] {
        let lease = LeaseToken { generation, ..leased.lease };
        check_lost(fx, Settlement { lease, ..settlement(&leased, Disposition::Complete) }).await;
    }
}

async fn a_wrong_attempt_cannot_settle(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    let Attempt { generation, number } = leased.attempt;
    let wrong = [
        Attempt { generation, number: number - 1 },
        Attempt { generation, number: number + 1 },
        Attempt { generation: generation + 1, number },
        Attempt { generation: u32::MAX, number: u32::MAX },
    ];
    for attempt in wrong {
        check_lost(fx, Settlement { attempt, ..settlement(&leased, Disposition::Complete) }).await;
    }
}

async fn a_message_that_never_was_cannot_be_settled(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    for seq in [Seq(0), Seq(-1), Seq(i64::MIN), Seq(i64::MAX)] {
        check_lost(fx, Settlement { seq, ..settlement(&leased, Disposition::Complete) }).await;
    }
}

async fn a_purged_message_cannot_be_settled(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.release(&leased).await;
    fx.change(mailslot_core::store::Change::Purge, [leased.envelope.id]).await;
    check_lost(fx, settlement(&leased, Disposition::Complete)).await;
}

async fn a_lost_settlement_stops_no_other(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    let leased = fx.lease(3).await;
    fx.complete(&leased[1]).await;
    let batch = leased.iter().map(|one| settlement(one, Disposition::Complete)).collect();
    let answers = fx.exchange(batch, None).await.settled;
    let applied = Settled::Applied(Status::Completed);
    assert_eq!(answers, [applied, Settled::LeaseLost, applied]);
}

async fn the_verdict_of_an_old_generation_is_lost(fx: &Fixture) {
    fx.accept(order()).await;
    let old = fx.lease_one().await;
    fx.dead_letter(&old).await;
    fx.change(mailslot_core::store::Change::Requeue, [old.envelope.id]).await;
    check_lost(fx, settlement(&old, Disposition::Complete)).await;
    let new = fx.lease_one().await;
    check_lost(fx, settlement(&old, Disposition::Complete)).await;
    assert_eq!(fx.complete(&new).await, Settled::Applied(Status::Completed));
}

async fn settle_at_once(fx: &Fixture, settlements: Vec<Settlement>) -> Vec<Settled> {
    let settling: Vec<_> = settlements
        .into_iter()
        .map(|settlement| {
            let store = Arc::clone(&fx.store);
            let exchange = Exchange { settlements: vec![settlement], lease: None };
            tokio::spawn(async move { store.exchange(exchange).await })
        })
        .collect();
    let mut answers = Vec::new();
    for settled in settling {
        answers.extend(done(settled.await.expect("a settlement does not panic")).settled);
    }
    answers
}

async fn many_who_settle_at_once_apply_once(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    let verdict = |n| {
        if n % 2 == 0 {
            Disposition::Complete
        } else {
            Disposition::Skip { reason: mailslot_core::Reason::Vetoed }
        }
    };
    let answers = settle_at_once(fx, (0..16).map(|n| settlement(&leased, verdict(n))).collect()).await;
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Settled::Applied(_))).count(), 1);
    assert_eq!(fx.history(leased.envelope.id).await.len(), 1);
}

async fn settlements_and_a_recovery_at_once_lose_nothing(fx: &Fixture) {
    fx.accept_all((0..32).map(|_| message("order"))).await;
    let leased = fx.lease(32).await;
    fx.advance(61);
    let store = Arc::clone(&fx.store);
    let recovering = tokio::spawn(async move { store.recover(10).await });
    let answers =
        settle_at_once(fx, leased.iter().map(|one| settlement(one, Disposition::Complete)).collect()).await;
    let recovered = done(recovering.await.expect("a recovery does not panic"));
    let applied = answers.iter().filter(|answer| matches!(answer, Settled::Applied(_))).count();
    assert_eq!(applied as u64 + recovered.returned, 32);
    assert_eq!(fx.lease(100).await.len() as u64, recovered.returned);
}
