//! Blocked sessions: what holds one back, and what lets it go on.

use super::Fixture;
use super::verbs::{done, ids, order, retry_in};
use crate::message::message;
use mailslot_core::store::{Change, Filter, HandoffResult};
use mailslot_core::{ErrorText, MessageId, Status};

cases![
    a_failing_head_retries_in_place,
    a_released_head_stays_the_head,
    an_expired_head_stays_the_head,
    a_scheduled_head_holds_the_rest,
    a_suspended_head_blocks_until_its_handoff_ends,
    a_failed_handoff_keeps_the_session_blocked,
    a_dead_head_blocks_its_session,
    a_requeue_of_the_dead_head_runs_it_again_first,
    a_skip_of_the_dead_head_lets_the_next_one_go,
    a_purge_of_the_head_lets_the_next_one_go,
    a_purge_of_a_parked_message_leaves_the_others,
    a_cancel_of_the_head_lets_the_next_one_go,
    a_cancel_of_a_leased_head_lets_the_next_one_go_when_it_takes,
    a_cancel_of_a_parked_message_leaves_the_order,
    a_change_of_a_whole_session_leaves_nothing_behind,
    a_blocked_session_slows_no_other,
    a_dead_head_that_dies_again_blocks_again,
    only_blocked_sessions_are_listed_as_blocked,
    a_redrive_unblocks_sessions,
];

/// Three messages of one session.
async fn three(fx: &Fixture) -> [MessageId; 3] {
    let accepted = fx.accept_all((0..3).map(|_| order().session("s"))).await;
    [accepted[0], accepted[1], accepted[2]]
}

async fn dead_head(fx: &Fixture) -> [MessageId; 3] {
    let three = three(fx).await;
    fx.dead_letter(&fx.lease_one().await).await;
    three
}

/// Leases whatever is due and completes it, until nothing is.
async fn drain(fx: &Fixture) -> Vec<MessageId> {
    let mut drained = Vec::new();
    loop {
        let leased = fx.lease(10).await;
        if leased.is_empty() {
            return drained;
        }
        for leased in leased {
            fx.complete(&leased).await;
            drained.push(leased.envelope.id);
        }
    }
}

async fn a_failing_head_retries_in_place(fx: &Fixture) {
    let three = three(fx).await;
    fx.settle(&fx.lease_one().await, retry_in(30)).await;
    assert_eq!(fx.lease(10).await, []);
    fx.advance(30);
    assert_eq!(drain(fx).await, three);
}

async fn a_released_head_stays_the_head(fx: &Fixture) {
    let three = three(fx).await;
    fx.release(&fx.lease_one().await).await;
    assert_eq!(drain(fx).await, three);
}

async fn an_expired_head_stays_the_head(fx: &Fixture) {
    let three = three(fx).await;
    fx.lease_one().await;
    fx.advance(61);
    assert_eq!(fx.lease(10).await, []);
    fx.recover().await;
    assert_eq!(drain(fx).await, three);
}

async fn a_scheduled_head_holds_the_rest(fx: &Fixture) {
    let first = fx.accept(order().session("s").due_in(100)).await.id;
    let second = fx.accept(order().session("s")).await.id;
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(fx.status(second).await, Status::Parked);
    fx.advance(100);
    assert_eq!(drain(fx).await, [first, second]);
}

async fn a_suspended_head_blocks_until_its_handoff_ends(fx: &Fixture) {
    let three = three(fx).await;
    fx.suspend(&fx.lease_one().await).await;
    assert_eq!(fx.lease(10).await, []);
    assert!(done(fx.store.sessions(true, 10).await)[0].is_blocked());
    assert!(done(fx.store.settle_handoff(three[0], HandoffResult::Completed).await));
    assert_eq!(drain(fx).await, three[1..]);
}

async fn a_failed_handoff_keeps_the_session_blocked(fx: &Fixture) {
    let three = three(fx).await;
    fx.suspend(&fx.lease_one().await).await;
    let failed = HandoffResult::Failed(ErrorText::new("refused"));
    assert!(done(fx.store.settle_handoff(three[0], failed).await));
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(done(fx.store.sessions(true, 10).await)[0].head_status, Status::DeadLettered);
}

async fn a_dead_head_blocks_its_session(fx: &Fixture) {
    let [head, second, _] = dead_head(fx).await;
    let new = fx.accept(order().session("s")).await.id;
    fx.advance(24 * 3_600);
    fx.recover().await;
    assert_eq!(fx.lease(10).await, []);
    assert_eq!(fx.statuses([second, new]).await, [Status::Parked, Status::Parked]);
    let listed = done(fx.store.sessions(true, 10).await);
    assert_eq!((listed[0].head, listed[0].head_status, listed[0].parked), (head, Status::DeadLettered, 3));
    assert!(listed[0].is_blocked());
}

async fn a_requeue_of_the_dead_head_runs_it_again_first(fx: &Fixture) {
    let three = dead_head(fx).await;
    fx.change(Change::Requeue, [three[0]]).await;
    assert_eq!(ids(&fx.lease(10).await), three[..1]);
    fx.advance(61);
    fx.recover().await;
    assert_eq!(drain(fx).await, three);
}

async fn a_skip_of_the_dead_head_lets_the_next_one_go(fx: &Fixture) {
    let three = dead_head(fx).await;
    fx.change(Change::Skip, [three[0]]).await;
    assert_eq!(drain(fx).await, three[1..]);
}

async fn a_purge_of_the_head_lets_the_next_one_go(fx: &Fixture) {
    let three = dead_head(fx).await;
    assert_eq!(fx.change(Change::Purge, [three[0]]).await, 1);
    // The second one is pending now, and gone as well; so the third one goes.
    assert_eq!(fx.change(Change::Purge, [three[1]]).await, 1);
    assert_eq!(drain(fx).await, three[2..]);
}

async fn a_purge_of_a_parked_message_leaves_the_others(fx: &Fixture) {
    let three = three(fx).await;
    assert_eq!(fx.change(Change::Purge, [three[1]]).await, 1);
    assert_eq!(done(fx.store.sessions(false, 10).await)[0].parked, 1);
    assert_eq!(drain(fx).await, [three[0], three[2]]);
}

async fn a_cancel_of_the_head_lets_the_next_one_go(fx: &Fixture) {
    let three = three(fx).await;
    fx.change(Change::Cancel, [three[0]]).await;
    assert_eq!(drain(fx).await, three[1..]);
}

async fn a_cancel_of_a_leased_head_lets_the_next_one_go_when_it_takes(fx: &Fixture) {
    let three = three(fx).await;
    let head = fx.lease_one().await;
    fx.change(Change::Cancel, [three[0]]).await;
    assert_eq!(fx.lease(10).await, []);
    fx.release(&head).await;
    assert_eq!(drain(fx).await, three[1..]);
}

async fn a_cancel_of_a_parked_message_leaves_the_order(fx: &Fixture) {
    let three = three(fx).await;
    let fourth = fx.accept(order().session("s")).await.id;
    fx.change(Change::Cancel, [three[1]]).await;
    assert_eq!(drain(fx).await, [three[0], three[2], fourth]);
}

async fn a_change_of_a_whole_session_leaves_nothing_behind(fx: &Fixture) {
    for change in [Change::Cancel, Change::Purge] {
        let three = three(fx).await;
        assert_eq!(fx.change(change, three).await, 3, "{change:?}");
        assert_eq!(done(fx.store.sessions(false, 10).await), []);
        assert_eq!(fx.lease(10).await, []);
    }
}

async fn a_blocked_session_slows_no_other(fx: &Fixture) {
    // The blocked one is older and longer than what a claim takes at once.
    fx.accept_all((0..50).map(|_| order().session("blocked"))).await;
    fx.dead_letter(&fx.lease_one().await).await;
    let others = fx.accept_all([order().session("t"), order(), order().session("u")]).await;
    assert_eq!(ids(&fx.lease(3).await), others);
}

async fn a_dead_head_that_dies_again_blocks_again(fx: &Fixture) {
    let three = dead_head(fx).await;
    for _ in 0..3 {
        fx.change(Change::Requeue, [three[0]]).await;
        fx.dead_letter(&fx.lease_one().await).await;
        assert_eq!(fx.lease(10).await, []);
    }
    fx.change(Change::Skip, [three[0]]).await;
    assert_eq!(drain(fx).await, three[1..]);
}

async fn only_blocked_sessions_are_listed_as_blocked(fx: &Fixture) {
    for &status in Status::ALL {
        let contract = format!("order-{status}");
        fx.place(message(&contract).session(&format!("session-{status}")), status).await;
    }
    let blocked = done(fx.store.sessions(true, 100).await);
    let keys: Vec<_> = blocked.iter().map(|session| session.key.to_string()).collect();
    assert_eq!(keys, ["session-dead_lettered", "session-suspended"]);
    let all: Vec<_> =
        done(fx.store.sessions(false, 100).await).into_iter().map(|s| s.key.to_string()).collect();
    let held = ["dead_lettered", "leased", "parked", "pending", "suspended"];
    assert_eq!(all, held.map(|status| format!("session-{status}")));
}

async fn a_redrive_unblocks_sessions(fx: &Fixture) {
    let three = dead_head(fx).await;
    let spec = mailslot_core::store::RedriveSpec { filter: Filter::default(), rate: 10 };
    done(fx.store.create_redrive(spec).await);
    done(fx.store.step_redrives().await);
    assert_eq!(drain(fx).await, three);
}
