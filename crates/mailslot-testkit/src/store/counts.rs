//! Counters follow every move. The runner compares them with a recount after each case.

use super::Fixture;
use super::verbs::{claim, done, order};
use crate::invariant::broken_invariants;
use crate::message::message;
use jiff::SignedDuration;
use mailslot_core::store::{Change, Count, Filter, HandoffResult, RedriveSpec, RetentionPolicy};
use mailslot_core::{EndpointName, Priority, Status};
use std::time::Duration;

cases![
    messages_are_counted_by_endpoint_contract_and_status,
    what_is_gone_is_not_counted,
    counts_follow_every_move,
    counts_do_not_count_what_was_refused,
    the_oldest_due_message_of_an_endpoint_tells_how_long_it_waits,
];

async fn the_oldest_due_message_of_an_endpoint_tells_how_long_it_waits(fx: &Fixture) {
    let endpoint = |name| EndpointName::new(name).expect("the name is right");
    let oldest = async |name| done(fx.store.oldest_due(&endpoint(name)).await);
    assert_eq!(oldest("default").await, None, "nothing is there");
    fx.accept(order().due_in(60)).await;
    fx.accept(order().endpoint("billing")).await;
    assert_eq!(oldest("default").await, None, "nothing is due");
    fx.clock.advance(SignedDuration::from_secs(10));
    fx.accept(message("invoice").priority(Priority::Low)).await;
    fx.clock.advance(SignedDuration::from_secs(5));
    fx.accept(order()).await;
    assert_eq!(oldest("default").await, Some(Duration::from_secs(5)));
    assert_eq!(oldest("billing").await, Some(Duration::from_secs(15)));
    fx.claim(claim("invoice")).await;
    assert_eq!(oldest("default").await, Some(Duration::ZERO), "what is leased does not wait");
}

async fn total(fx: &Fixture, status: Status) -> u64 {
    let counts = done(fx.store.counts().await);
    counts.iter().filter(|count| count.status == status).map(|count| count.messages).sum()
}

async fn messages_are_counted_by_endpoint_contract_and_status(fx: &Fixture) {
    fx.accept_all([order(), order(), message("order@2"), message("invoice"), order().endpoint("billing")])
        .await;
    fx.lease_one().await;
    let mut counts = done(fx.store.counts().await);
    counts.sort_unstable();
    let told: Vec<_> = counts
        .iter()
        .map(|Count { endpoint, contract, status, messages }| {
            format!("{endpoint} {contract} {status} {messages}")
        })
        .collect();
    assert_eq!(
        told,
        [
            "billing order@1 pending 1",
            "default invoice@1 pending 1",
            "default order@1 pending 1",
            "default order@1 leased 1",
            "default order@2 pending 1",
        ]
    );
}

async fn what_is_gone_is_not_counted(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    fx.change(Change::Purge, [id]).await;
    assert_eq!(done(fx.store.counts().await), []);
}

async fn check(fx: &Fixture, after: &str) {
    assert_eq!(done(broken_invariants(&*fx.store).await), Vec::<String>::new(), "after {after}");
}

async fn counts_follow_every_move(fx: &Fixture) {
    let accepted = fx.accept_all((0..12).map(|n| order().session(&format!("s{}", n % 4)))).await;
    check(fx, "an accept").await;
    let leased = fx.lease(4).await;
    check(fx, "a lease").await;
    fx.complete(&leased[0]).await;
    check(fx, "a completion").await;
    fx.retry(&leased[1], 0).await;
    check(fx, "a retry").await;
    fx.dead_letter(&leased[2]).await;
    check(fx, "a dead letter").await;
    fx.suspend(&leased[3]).await;
    check(fx, "a suspension").await;
    assert!(done(fx.store.settle_handoff(accepted[3], HandoffResult::Completed).await));
    check(fx, "a handoff").await;
    fx.lease(1).await;
    fx.advance(61);
    fx.recover().await;
    check(fx, "a recovery").await;
    fx.change(Change::Requeue, [accepted[2]]).await;
    check(fx, "a requeue").await;
    fx.dead_letter(&fx.claim(claim("order").limit(1)).await.leased[0]).await;
    done(fx.store.create_redrive(RedriveSpec { filter: Filter::default(), rate: 10 }).await);
    done(fx.store.step_redrives().await);
    check(fx, "a redrive").await;
    fx.change(Change::Cancel, [accepted[5], accepted[6]]).await;
    check(fx, "a cancel").await;
    fx.claim(claim("order").attempts(1)).await;
    check(fx, "exhaustion").await;
    done(fx.store.change(Change::Skip, &Filter::default(), 1).await);
    check(fx, "a skip").await;
    fx.change(Change::Purge, [accepted[1], accepted[7]]).await;
    check(fx, "a purge").await;
    fx.advance(1);
    let policy = RetentionPolicy { completed: Some(Duration::ZERO), ..RetentionPolicy::keep_all() };
    done(fx.store.retain(None, &policy, 10).await);
    check(fx, "retention").await;
}

async fn counts_do_not_count_what_was_refused(fx: &Fixture) {
    fx.accept(order().key("k")).await;
    fx.append_group([order(), order().key("k").payload("other")]).await;
    fx.accept(order().key("k")).await;
    assert_eq!(total(fx, Status::Pending).await, 1);
}
