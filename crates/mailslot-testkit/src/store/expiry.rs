//! Leases that run out: the messages come back, the attempt stays used.

use super::Fixture;
use super::verbs::{claim, done, ids, order, owner};
use mailslot_core::store::{Recovered, Settled};
use mailslot_core::{Attempt, OutcomeKind, Reason, Status};
use std::time::Duration;

cases![
    a_running_lease_is_not_recovered,
    a_lease_is_over_at_its_end,
    an_expired_message_comes_back_due_at_once_with_its_attempt_used,
    an_expired_message_goes_to_another_worker_as_the_next_attempt,
    an_expired_lease_holds_its_messages_until_recovered,
    a_settlement_after_the_end_applies_if_nothing_was_recovered,
    a_settlement_after_a_recovery_is_lost,
    a_settlement_of_an_old_attempt_changes_nothing_for_the_new_worker,
    only_what_is_unsettled_comes_back,
    a_recovery_takes_the_oldest_ends_first,
    concurrent_recoveries_return_each_message_once,
    a_recovery_of_nothing_changes_nothing,
];

async fn a_running_lease_is_not_recovered(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(59);
    assert_eq!(fx.recover().await, Recovered::default());
    assert_eq!(fx.status(leased.envelope.id).await, Status::Leased);
}

async fn a_lease_is_over_at_its_end(fx: &Fixture) {
    fx.accept(order()).await;
    fx.lease_one().await;
    fx.advance(60);
    assert_eq!(fx.recover().await, Recovered { leases: 1, returned: 1, cancelled: 0 });
}

async fn an_expired_message_comes_back_due_at_once_with_its_attempt_used(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let leased = fx.lease_one().await;
    fx.advance(100);
    fx.recover().await;
    let detail = fx.detail(id).await;
    assert_eq!((detail.record.status, detail.record.due_at), (Status::Pending, Some(fx.now())));
    assert_eq!(detail.record.attempt, leased.attempt);
    assert_eq!((detail.record.reason, detail.record.error), (Some(Reason::LeaseExpired), None));
    let outcome = &detail.history[0];
    assert_eq!((outcome.kind, outcome.attempt, outcome.at), (OutcomeKind::Expired, leased.attempt, fx.now()));
    assert_eq!(done(fx.store.leases(10).await), []);
}

async fn an_expired_message_goes_to_another_worker_as_the_next_attempt(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let old = fx.lease_one().await;
    fx.advance(61);
    fx.recover().await;
    let exchanged = fx.claim(claim("order").by(&owner("other"))).await;
    assert_eq!(ids(&exchanged.leased), [id]);
    assert_eq!(exchanged.leased[0].attempt, Attempt { generation: 0, number: 2 });
    assert!(exchanged.leased[0].lease.generation > old.lease.generation);
}

async fn an_expired_lease_holds_its_messages_until_recovered(fx: &Fixture) {
    fx.accept(order()).await;
    fx.lease_one().await;
    fx.advance(3_600);
    assert_eq!(fx.lease(10).await, []);
    fx.recover().await;
    assert_eq!(fx.lease(10).await.len(), 1);
}

async fn a_settlement_after_the_end_applies_if_nothing_was_recovered(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(3_600);
    assert_eq!(fx.complete(&leased).await, Settled::Applied(Status::Completed));
    assert_eq!(fx.recover().await, Recovered::default());
}

async fn a_settlement_after_a_recovery_is_lost(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(61);
    fx.recover().await;
    let before = fx.detail(leased.envelope.id).await;
    assert_eq!(fx.complete(&leased).await, Settled::LeaseLost);
    assert_eq!(fx.detail(leased.envelope.id).await, before);
}

async fn a_settlement_of_an_old_attempt_changes_nothing_for_the_new_worker(fx: &Fixture) {
    fx.accept(order()).await;
    let old = fx.lease_one().await;
    fx.advance(61);
    fx.recover().await;
    // The same worker takes it again: only the token tells the two apart.
    let new = fx.lease_one().await;
    assert_eq!(fx.dead_letter(&old).await, Settled::LeaseLost);
    assert_eq!(fx.status(new.envelope.id).await, Status::Leased);
    assert_eq!(fx.complete(&new).await, Settled::Applied(Status::Completed));
    assert_eq!(fx.complete(&old).await, Settled::LeaseLost);
}

async fn only_what_is_unsettled_comes_back(fx: &Fixture) {
    let accepted = fx.accept_all((0..4).map(|_| order())).await;
    let leased = fx.lease(4).await;
    fx.complete(&leased[0]).await;
    fx.dead_letter(&leased[2]).await;
    fx.advance(61);
    assert_eq!(fx.recover().await, Recovered { leases: 1, returned: 2, cancelled: 0 });
    assert_eq!(ids(&fx.lease(4).await), [accepted[1], accepted[3]]);
    assert_eq!(fx.statuses([accepted[0], accepted[2]]).await, [Status::Completed, Status::DeadLettered]);
}

async fn a_recovery_takes_the_oldest_ends_first(fx: &Fixture) {
    let accepted = fx.accept_all((0..3).map(|_| order())).await;
    for seconds in [30, 10, 20] {
        fx.claim(claim("order").limit(1).lasting(Duration::from_secs(seconds))).await;
    }
    fx.advance(60);
    assert_eq!(done(fx.store.recover(2).await), Recovered { leases: 2, returned: 2, cancelled: 0 });
    let statuses = fx.statuses([accepted[0], accepted[1], accepted[2]]).await;
    assert_eq!(statuses, [Status::Leased, Status::Pending, Status::Pending]);
    assert_eq!(done(fx.store.recover(2).await).returned, 1);
}

async fn concurrent_recoveries_return_each_message_once(fx: &Fixture) {
    fx.accept_all((0..30).map(|_| order())).await;
    for _ in 0..10 {
        fx.lease(3).await;
    }
    fx.advance(61);
    let recovering: Vec<_> = (0..8)
        .map(|_| {
            let store = std::sync::Arc::clone(&fx.store);
            tokio::spawn(async move { store.recover(10).await })
        })
        .collect();
    let mut total = Recovered::default();
    for recovered in recovering {
        let recovered = done(recovered.await.expect("a recovery does not panic"));
        total.leases += recovered.leases;
        total.returned += recovered.returned;
    }
    assert_eq!(total, Recovered { leases: 10, returned: 30, cancelled: 0 });
    assert!(fx.lease(30).await.iter().all(|leased| leased.attempt.number == 2));
}

async fn a_recovery_of_nothing_changes_nothing(fx: &Fixture) {
    assert_eq!(fx.recover().await, Recovered::default());
    let id = fx.accept(order()).await.id;
    fx.advance(3_600);
    let before = fx.detail(id).await;
    assert_eq!(fx.recover().await, Recovered::default());
    assert_eq!(fx.detail(id).await, before);
}
