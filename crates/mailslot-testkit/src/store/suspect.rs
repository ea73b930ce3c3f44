//! A message that is suspected of killing its workers runs with no other suspect beside it, so that the guilty one uses
//! up its own attempts and takes no neighbour with it.

use super::Fixture;
use super::verbs::{ATTEMPTS, claim, ids, order, owner};
use mailslot_core::limits::SUSPECT_AFTER;
use mailslot_core::store::Change;
use mailslot_core::{MessageId, Reason, Status};

cases![
    one_crash_makes_nobody_a_suspect,
    an_owner_holds_one_suspect_at_a_time,
    another_owner_may_hold_another_suspect,
    a_suspect_holds_up_no_other_message,
    a_crowd_of_suspects_holds_up_no_message_behind_it,
    a_suspect_that_is_settled_makes_room_for_the_next,
    a_failure_that_is_no_crash_clears_the_suspicion,
    a_requeue_clears_the_suspicion,
    a_deadly_message_takes_no_neighbour_with_it,
];

/// The worker of every leased message dies.
async fn crash(fx: &Fixture) {
    fx.advance(61);
    fx.recover().await;
}

/// Accepts orders whose workers have died so often that they are suspects.
async fn suspects(fx: &Fixture, count: usize) -> Vec<MessageId> {
    let ids = fx.accept_all((0..count).map(|_| order())).await;
    for _ in 0..SUSPECT_AFTER {
        assert_eq!(fx.lease(count).await.len(), count);
        crash(fx).await;
    }
    ids
}

async fn one_crash_makes_nobody_a_suspect(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    fx.lease(3).await;
    crash(fx).await;
    let exchanged = fx.claim(claim("order").limit(3)).await;
    assert_eq!((exchanged.leased.len(), exchanged.held_back), (3, 0));
}

async fn an_owner_holds_one_suspect_at_a_time(fx: &Fixture) {
    let suspects = suspects(fx, 3).await;
    let exchanged = fx.claim(claim("order").limit(3)).await;
    assert_eq!((ids(&exchanged.leased), exchanged.held_back), (suspects[..1].to_vec(), 2));
    let exchanged = fx.claim(claim("order").limit(3)).await;
    assert_eq!((ids(&exchanged.leased), exchanged.held_back), (vec![], 2));
}

async fn another_owner_may_hold_another_suspect(fx: &Fixture) {
    let suspects = suspects(fx, 3).await;
    fx.lease_one().await;
    let exchanged = fx.claim(claim("order").limit(3).by(&owner("other"))).await;
    assert_eq!(ids(&exchanged.leased), suspects[1..2]);
}

async fn a_suspect_holds_up_no_other_message(fx: &Fixture) {
    let suspects = suspects(fx, 2).await;
    let fresh = fx.accept_all((0..2).map(|_| order())).await;
    let leased = ids(&fx.lease(10).await);
    assert_eq!(leased, [&suspects[..1], &fresh[..]].concat());
    let late = fx.accept(order()).await.id;
    let exchanged = fx.claim(claim("order").limit(10)).await;
    assert_eq!((ids(&exchanged.leased), exchanged.held_back), (vec![late], 1));
}

async fn a_crowd_of_suspects_holds_up_no_message_behind_it(fx: &Fixture) {
    let suspects = suspects(fx, 30).await;
    let fresh = fx.accept_all((0..3).map(|_| order())).await;
    assert_eq!(ids(&fx.lease(1).await), suspects[..1]);
    assert_eq!(ids(&fx.lease(1).await), fresh[..1]);
    assert_eq!(ids(&fx.lease(2).await), fresh[1..]);
    assert_eq!(ids(&fx.lease(2).await), []);
}

async fn a_suspect_that_is_settled_makes_room_for_the_next(fx: &Fixture) {
    let suspects = suspects(fx, 2).await;
    let first = fx.lease_one().await;
    fx.complete(&first).await;
    assert_eq!(ids(&fx.lease(10).await), suspects[1..]);
}

async fn a_failure_that_is_no_crash_clears_the_suspicion(fx: &Fixture) {
    suspects(fx, 2).await;
    for _ in 0..2 {
        let leased = fx.lease_one().await;
        fx.retry(&leased, 0).await;
    }
    let exchanged = fx.claim(claim("order").limit(10).attempts(100)).await;
    assert_eq!((exchanged.leased.len(), exchanged.held_back), (2, 0));
}

async fn a_requeue_clears_the_suspicion(fx: &Fixture) {
    let suspects = suspects(fx, 2).await;
    for _ in 0..2 {
        let leased = fx.lease_one().await;
        fx.dead_letter(&leased).await;
    }
    assert_eq!(fx.change(Change::Requeue, suspects).await, 2);
    assert_eq!(fx.lease(10).await.len(), 2);
}

async fn a_deadly_message_takes_no_neighbour_with_it(fx: &Fixture) {
    let messages = fx.accept_all((0..5).map(|_| order())).await;
    let deadly = messages[2];
    // Every worker claims all it can; it dies if the deadly message is among it, and else completes everything.
    for round in 0.. {
        assert!(round < 20, "the work comes to an end");
        let leased = fx.claim(claim("order").limit(10).by(&owner("worker"))).await.leased;
        if leased.iter().any(|leased| leased.envelope.id == deadly) {
            crash(fx).await;
            continue;
        }
        for leased in &leased {
            fx.complete(leased).await;
        }
        if leased.is_empty() {
            break;
        }
    }
    for id in messages {
        let detail = fx.detail(id).await;
        if id == deadly {
            assert_eq!(
                (detail.record.status, detail.record.reason),
                (Status::DeadLettered, Some(Reason::Crashed))
            );
            assert_eq!(detail.record.attempt.number, ATTEMPTS);
        } else {
            assert_eq!(detail.record.status, Status::Completed, "{:#?}", detail.history);
        }
    }
}
