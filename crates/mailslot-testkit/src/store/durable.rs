//! What a durable store must still know when the same data is opened again.

use super::Fixture;
use super::verbs::{LEASE, claim, done, every_record, ids, order, owner};
use crate::message::message;
use mailslot_core::store::{Change, Exchange, Filter, MessageDetail, RedriveAction, RedriveSpec, Settled};
use mailslot_core::{Attempt, MessageId, Status};
use std::time::Duration;

cases![
    every_message_survives_with_its_history needs Reopen,
    keys_and_ids_survive needs Reopen,
    sessions_survive needs Reopen,
    leases_survive_and_still_run_out needs Reopen,
    a_lease_survives_for_the_worker_that_holds_it needs Reopen,
    a_cancel_request_survives needs Reopen,
    redrives_survive needs Reopen,
    counts_survive needs Reopen,
    new_messages_and_claims_follow_the_old_ones needs Reopen,
    two_handles_see_one_store needs Sharing,
    two_handles_claim_different_messages needs Sharing,
    two_handles_accept_one_key_once needs Sharing,
    an_accept_wakes_another_handle needs WakingOthers,
];

async fn fill(fx: &Fixture) -> Vec<MessageId> {
    let mut placed = Vec::new();
    for &status in Status::ALL {
        let full = message(&format!("order-{status}")).key(&format!("key-{status}"));
        let full = full.session(&format!("session-{status}")).tenant("acme").header("a", "b");
        placed.push(fx.place(full, status).await.id);
    }
    placed
}

async fn details(fx: &Fixture, ids: &[MessageId]) -> Vec<MessageDetail> {
    let mut details = Vec::new();
    for &id in ids {
        details.push(fx.detail(id).await);
    }
    details
}

async fn every_message_survives_with_its_history(fx: &mut Fixture) {
    let placed = fill(fx).await;
    let before = details(fx, &placed).await;
    fx.reopen().await;
    assert_eq!(details(fx, &placed).await, before);
}

async fn keys_and_ids_survive(fx: &mut Fixture) {
    let id = MessageId::generate();
    let first = fx.accept(order().id(id).key("k").tenant("acme")).await;
    fx.reopen().await;
    fx.advance(5);
    let by_id = fx.accept(order().id(id).tenant("acme")).await;
    let by_key = fx.accept(order().key("k").tenant("acme")).await;
    assert!(!by_id.is_new() && !by_key.is_new());
    assert_eq!((by_id.accepted_at, by_key.id), (first.accepted_at, id));
    assert!(fx.offer(order().key("k").tenant("acme").payload("other")).await.receipt().is_none());
}

async fn sessions_survive(fx: &mut Fixture) {
    let accepted = fx.accept_all((0..3).map(|_| order().session("s"))).await;
    fx.complete(&fx.lease_one().await).await;
    let before = done(fx.store.sessions(false, 10).await);
    fx.reopen().await;
    assert_eq!(done(fx.store.sessions(false, 10).await), before);
    let second = fx.lease(10).await;
    assert_eq!(ids(&second), [accepted[1]]);
    fx.complete(&second[0]).await;
    assert_eq!(ids(&fx.lease(10).await), [accepted[2]]);
}

async fn leases_survive_and_still_run_out(fx: &mut Fixture) {
    let id = fx.accept(order()).await.id;
    fx.lease_one().await;
    let before = done(fx.store.leases(10).await);
    fx.reopen().await;
    assert_eq!(done(fx.store.leases(10).await), before);
    assert_eq!(fx.lease(10).await, []);
    fx.advance(60);
    assert_eq!(fx.recover().await.returned, 1);
    let again = fx.lease_one().await;
    assert_eq!((again.envelope.id, again.attempt), (id, Attempt { generation: 0, number: 2 }));
}

async fn a_lease_survives_for_the_worker_that_holds_it(fx: &mut Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.reopen().await;
    assert_eq!(fx.complete(&leased).await, Settled::Applied(Status::Completed));
    fx.reopen().await;
    assert_eq!(fx.complete(&leased).await, Settled::LeaseLost);
}

async fn a_cancel_request_survives(fx: &mut Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.change(Change::Cancel, [leased.envelope.id]).await;
    fx.reopen().await;
    assert_eq!(fx.release(&leased).await, Settled::Applied(Status::Cancelled));
}

async fn redrives_survive(fx: &mut Fixture) {
    for _ in 0..5 {
        fx.place(order(), Status::DeadLettered).await;
    }
    let redrive = done(fx.store.create_redrive(RedriveSpec { filter: Filter::default(), rate: 2 }).await);
    done(fx.store.step_redrives().await);
    let before = done(fx.store.redrives().await);
    fx.reopen().await;
    assert_eq!(done(fx.store.redrives().await), before);
    fx.advance(1);
    assert_eq!(done(fx.store.step_redrives().await)[0].requeued, 4);
    done(fx.store.act_on_redrive(redrive.id, RedriveAction::Cancel).await);
    fx.reopen().await;
    assert_eq!(done(fx.store.step_redrives().await), []);
}

async fn counts_survive(fx: &mut Fixture) {
    fill(fx).await;
    let before = done(fx.store.counts().await);
    fx.reopen().await;
    assert_eq!(done(fx.store.counts().await), before);
}

async fn new_messages_and_claims_follow_the_old_ones(fx: &mut Fixture) {
    let first = fx.accept(order()).await.id;
    let old = fx.lease_one().await;
    fx.complete(&old).await;
    fx.change(Change::Purge, [first]).await;
    fx.reopen().await;
    fx.accept(order()).await;
    let new = fx.lease_one().await;
    // Even though nothing of the old ones is left: neither a place nor a token is ever used again.
    assert!(new.envelope.seq > old.envelope.seq);
    assert!(new.lease.generation > old.lease.generation);
}

async fn two_handles_see_one_store(fx: &mut Fixture) {
    let other = fx.another_handle().await;
    let id = fx.accept(order()).await.id;
    let leased = fx.lease_one().await;
    let seen = done(every_record(&*other, &Filter::default()).await);
    assert_eq!((seen[0].envelope.id, seen[0].status), (id, Status::Leased));
    let settlements = vec![super::verbs::settlement(&leased, mailslot_core::Disposition::Complete)];
    let settled = done(other.exchange(Exchange { settlements, lease: None }).await).settled;
    assert_eq!(settled, [Settled::Applied(Status::Completed)]);
    assert_eq!(fx.status(id).await, Status::Completed);
}

async fn two_handles_claim_different_messages(fx: &mut Fixture) {
    let other = fx.another_handle().await;
    let mut accepted = fx.accept_all((0..40).map(|_| order())).await;
    let claiming: Vec<_> = (0..20)
        .map(|n| {
            let store = std::sync::Arc::clone(if n % 2 == 0 { &fx.store } else { &other });
            let request = claim("order").limit(2).lasting(LEASE).request(&owner("worker"));
            tokio::spawn(async move {
                store.exchange(Exchange { lease: Some(request), settlements: vec![] }).await
            })
        })
        .collect();
    let mut taken = Vec::new();
    for claimed in claiming {
        taken.extend(ids(&done(claimed.await.expect("a claim does not panic")).leased));
    }
    taken.sort_unstable();
    accepted.sort_unstable();
    assert_eq!(taken, accepted);
}

async fn two_handles_accept_one_key_once(fx: &mut Fixture) {
    let other = fx.another_handle().await;
    let accepting: Vec<_> = (0..32)
        .map(|n| {
            let store = std::sync::Arc::clone(if n % 2 == 0 { &fx.store } else { &other });
            let group = order().key("k").build().into();
            tokio::spawn(async move { store.append(vec![group]).await })
        })
        .collect();
    let mut new = 0;
    for accepted in accepting {
        let answers = done(accepted.await.expect("an accept does not panic"));
        new += u32::from(answers[0][0].receipt().expect("a duplicate is no error").is_new());
    }
    assert_eq!(new, 1);
}

async fn an_accept_wakes_another_handle(fx: &mut Fixture) {
    let other = fx.another_handle().await;
    let woken = other.work_signal().listen();
    fx.accept(order()).await;
    let woken = tokio::time::timeout(Duration::from_secs(10), woken).await;
    assert!(woken.is_ok(), "no wake-up reached the other handle");
}
