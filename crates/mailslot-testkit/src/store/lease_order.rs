//! The order of a claim, and what is due when.

use super::Fixture;
use super::verbs::{claim, ids, order};
use crate::message::message;
use jiff::Timestamp;
use mailslot_core::MessageId;

cases![
    a_batch_comes_in_acceptance_order_at_one_due_time,
    a_batch_comes_in_due_order_whatever_the_acceptance_order,
    a_batch_keeps_its_order_after_rows_were_rewritten,
    several_lanes_are_merged_by_due_time,
    a_delayed_message_waits_for_its_time,
    a_message_due_at_an_instant_waits_for_it,
    a_due_time_in_the_past_means_at_once,
    a_drain_takes_only_what_was_due_at_its_start,
    a_drain_takes_nothing_early,
    the_next_due_time_is_that_of_the_first_waiting_message,
    the_next_due_time_looks_at_the_claimed_lanes_only,
    the_next_due_time_counts_retries,
    a_thousand_scheduled_messages_come_in_due_order,
];

async fn a_batch_comes_in_acceptance_order_at_one_due_time(fx: &Fixture) {
    let mut accepted = Vec::new();
    for _ in 0..10 {
        accepted.push(fx.accept(order()).await.id);
    }
    assert_eq!(ids(&fx.lease(4).await), accepted[..4]);
    assert_eq!(ids(&fx.lease(10).await), accepted[4..]);
}

async fn a_batch_comes_in_due_order_whatever_the_acceptance_order(fx: &Fixture) {
    let delays = [40, 10, 50, 30, 20];
    let accepted = fx.accept_all(delays.map(|delay| order().due_in(delay))).await;
    fx.advance(60);
    let expected = [1, 4, 3, 0, 2].map(|n: usize| accepted[n]);
    assert_eq!(ids(&fx.lease(3).await), expected[..3]);
    assert_eq!(ids(&fx.lease(3).await), expected[3..]);
}

async fn a_batch_keeps_its_order_after_rows_were_rewritten(fx: &Fixture) {
    let accepted = fx.accept_all((0..6).map(|_| order())).await;
    let leased = fx.lease(6).await;
    // Each comes back due at its release, in another order than it was accepted.
    for n in [4, 0, 5, 2, 1, 3] {
        fx.release(&leased[n]).await;
    }
    assert_eq!(ids(&fx.lease(6).await), accepted);
}

async fn several_lanes_are_merged_by_due_time(fx: &Fixture) {
    let delays = [("order", 3), ("invoice", 1), ("order", 2), ("invoice", 4)];
    let accepted = fx.accept_all(delays.map(|(contract, delay)| message(contract).due_in(delay))).await;
    fx.advance(10);
    let both = claim("order").lane("default", "invoice");
    let expected = [1, 2, 0, 3].map(|n: usize| accepted[n]);
    assert_eq!(ids(&fx.claim(both.clone().limit(3)).await.leased), expected[..3]);
    assert_eq!(ids(&fx.claim(both).await.leased), expected[3..]);
}

async fn a_delayed_message_waits_for_its_time(fx: &Fixture) {
    fx.advance(100);
    let id = fx.accept(order().due_in(30)).await.id;
    assert_eq!(fx.record(id).await.due_at, Some(fx.after(30)));
    fx.advance(29);
    assert_eq!(fx.lease(10).await, []);
    fx.advance(1);
    assert_eq!(ids(&fx.lease(10).await), [id]);
}

async fn a_message_due_at_an_instant_waits_for_it(fx: &Fixture) {
    let at = fx.after(30);
    let id = fx.accept(order().due_at(at)).await.id;
    assert_eq!(fx.lease(10).await, []);
    fx.advance(31);
    let leased = fx.lease(10).await;
    assert_eq!((ids(&leased), leased[0].due_at), (vec![id], at));
}

async fn a_due_time_in_the_past_means_at_once(fx: &Fixture) {
    let first = fx.accept(order()).await.id;
    let past = fx.accept(order().due_at(fx.after(-3_600))).await;
    let ancient = fx.accept(order().due_at(Timestamp::MIN)).await.id;
    assert_eq!(fx.record(past.id).await.due_at, Some(past.accepted_at));
    assert_eq!(ids(&fx.lease(10).await), [first, past.id, ancient]);
}

async fn a_drain_takes_only_what_was_due_at_its_start(fx: &Fixture) {
    let start = fx.now();
    let old = fx.accept_all([order(), order().due_in(10)]).await;
    fx.advance(10);
    fx.accept(order()).await;
    assert_eq!(ids(&fx.claim(claim("order").due_until(start)).await.leased), [old[0]]);
    assert_eq!(fx.claim(claim("order").due_until(start)).await.leased, []);
    assert_eq!(fx.claim(claim("order").due_until(fx.now())).await.leased.len(), 2);
}

async fn a_drain_takes_nothing_early(fx: &Fixture) {
    fx.accept(order().due_in(10)).await;
    assert_eq!(fx.claim(claim("order").due_until(fx.after(100))).await.leased, []);
}

async fn next_due(fx: &Fixture) -> Option<Timestamp> {
    fx.claim(claim("order")).await.next_due
}

async fn the_next_due_time_is_that_of_the_first_waiting_message(fx: &Fixture) {
    fx.accept_all([order().due_in(50), order().due_in(20), order()]).await;
    let twenty = fx.after(20);
    let exchanged = fx.claim(claim("order").limit(5)).await;
    assert_eq!((exchanged.leased.len(), exchanged.next_due), (1, Some(twenty)));
    assert_eq!(next_due(fx).await, Some(twenty));
    fx.advance(20);
    let fifty = fx.after(30);
    assert_eq!(next_due(fx).await, Some(fifty));
    fx.advance(30);
    assert_eq!(next_due(fx).await, None);
}

async fn the_next_due_time_looks_at_the_claimed_lanes_only(fx: &Fixture) {
    fx.accept_all([order().endpoint("billing").due_in(1), message("invoice").due_in(2), order().due_in(3)])
        .await;
    assert_eq!(next_due(fx).await, Some(fx.after(3)));
    let both = claim("order").lane("default", "invoice");
    assert_eq!(fx.claim(both).await.next_due, Some(fx.after(2)));
}

async fn the_next_due_time_counts_retries(fx: &Fixture) {
    fx.accept(order()).await;
    fx.retry(&fx.lease_one().await, 45).await;
    assert_eq!(next_due(fx).await, Some(fx.after(45)));
}

async fn a_thousand_scheduled_messages_come_in_due_order(fx: &Fixture) {
    // 617 and 1,009 have no common factor, so the delays are a permutation.
    let delays: Vec<i64> = (0..1_000).map(|n| n * 617 % 1_009).collect();
    let accepted = fx.accept_all(delays.iter().map(|&delay| order().due_in(delay))).await;
    let mut expected: Vec<(i64, MessageId)> = delays.into_iter().zip(accepted).collect();
    expected.sort_unstable_by_key(|&(delay, _)| delay);
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
    fx.advance(2_000);
    let mut taken = Vec::new();
    while let batch @ [_, ..] = &*ids(&fx.lease(128).await) {
        taken.extend_from_slice(batch);
    }
    assert_eq!(taken, expected);
}
