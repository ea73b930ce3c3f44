//! Queries: every predicate, both orders, pages that stay stable.

use super::Fixture;
use super::verbs::{done, endpoint, order, tenant};
use crate::message::{message, valid};
use mailslot_core::limits::PAGE_MAX;
use mailslot_core::store::{Change, Cursor, Filter, PageOrder, PageRequest};
use mailslot_core::{
    CausationId, CorrelationId, IdempotencyKey, MessageId, Reason, SessionKey, Status, StoreErrorKind,
};

cases![
    each_predicate_selects_alone,
    all_predicates_together_select_one,
    a_predicate_on_a_missing_field_selects_nothing,
    the_acceptance_range_is_half_open,
    a_reason_is_that_of_the_last_outcome,
    a_change_meets_nothing_newer_than_what_was_seen,
    pages_follow_acceptance_order_both_ways,
    a_last_page_says_so,
    pages_stay_stable_while_messages_come_and_go,
    page_sizes_out_of_bounds_are_refused,
    the_largest_page_is_allowed,
    a_message_is_found_with_its_history_by_id,
    a_parked_message_names_the_head_it_waits_behind,
];

async fn each_predicate_selects_alone(fx: &Fixture) {
    let start = fx.now();
    let wanted = message("wanted@2")
        .id(MessageId::generate())
        .endpoint("billing")
        .tenant("acme")
        .session("s")
        .key("k")
        .workflow("c", "cause");
    let other = fx.accept(order().tenant("umbrella").session("t").key("l").workflow("d", "other")).await.id;
    fx.advance(10);
    let id = fx.place(wanted, Status::DeadLettered).await.id;
    let none = Filter::default();
    let filters = [
        Filter::of_ids([id]),
        Filter { statuses: Some(vec![Status::DeadLettered, Status::Parked]), ..none.clone() },
        Filter { endpoint: Some(endpoint("billing")), ..none.clone() },
        Filter { contract: Some(valid("wanted@2".parse())), ..none.clone() },
        Filter { tenant: Some(tenant("acme")), ..none.clone() },
        Filter { session: Some(valid(SessionKey::new("s"))), ..none.clone() },
        Filter { idempotency_key: Some(valid(IdempotencyKey::new("k"))), ..none.clone() },
        Filter { correlation: Some(valid(CorrelationId::new("c"))), ..none.clone() },
        Filter { causation: Some(valid(CausationId::new("cause"))), ..none.clone() },
        Filter { reason: Some(Reason::Permanent), ..none.clone() },
        Filter { accepted_from: Some(fx.now()), ..none.clone() },
    ];
    for filter in filters {
        assert_eq!(fx.find(filter.clone()).await, [id], "{filter:?}");
    }
    let before = Filter { accepted_before: Some(fx.now()), ..none.clone() };
    assert_eq!(fx.find(before).await, [other]);
    assert_eq!(fx.find(Filter { accepted_from: Some(start), ..none.clone() }).await, [other, id]);
    assert_eq!(fx.find(Filter { contract: Some(valid("wanted@1".parse())), ..none }).await, []);
}

fn every_predicate(fx: &Fixture, id: MessageId) -> Filter {
    Filter {
        ids: Some(vec![MessageId::generate(), id]),
        statuses: Some(vec![Status::DeadLettered]),
        endpoint: Some(endpoint("billing")),
        contract: Some(valid("order@2".parse())),
        tenant: Some(tenant("acme")),
        session: Some(valid(SessionKey::new("s"))),
        idempotency_key: Some(valid(IdempotencyKey::new("k"))),
        correlation: Some(valid(CorrelationId::new("c"))),
        causation: Some(valid(CausationId::new("cause"))),
        reason: Some(Reason::Permanent),
        generation: Some(0),
        accepted_from: Some(fx.now()),
        accepted_before: Some(fx.after(1)),
    }
}

async fn all_predicates_together_select_one(fx: &Fixture) {
    let full = || message("order@2").endpoint("billing").tenant("acme").session("s").workflow("c", "cause");
    let id = fx.place(full().key("k"), Status::DeadLettered).await.id;
    let decoy = fx.accept(full().key("other")).await.id;
    let all = every_predicate(fx, id);
    assert_eq!(fx.find(all.clone()).await, [id]);
    assert_eq!(fx.find(Filter { tenant: Some(tenant("umbrella")), ..all.clone() }).await, []);
    assert_eq!(done(fx.store.change(Change::Purge, &all, 10).await).changed, 1);
    assert_eq!(fx.find(Filter::default()).await, [decoy]);
}

async fn a_predicate_on_a_missing_field_selects_nothing(fx: &Fixture) {
    fx.accept(order()).await;
    let none = Filter::default();
    let filters = [
        Filter { tenant: Some(tenant("acme")), ..none.clone() },
        Filter { session: Some(valid(SessionKey::new("s"))), ..none.clone() },
        Filter { idempotency_key: Some(valid(IdempotencyKey::new("k"))), ..none.clone() },
        Filter { correlation: Some(valid(CorrelationId::new("c"))), ..none.clone() },
        Filter { causation: Some(valid(CausationId::new("c"))), ..none.clone() },
        Filter { reason: Some(Reason::Failed), ..none },
    ];
    for filter in filters {
        assert_eq!(fx.find(filter.clone()).await, [], "{filter:?}");
    }
}

async fn the_acceptance_range_is_half_open(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let between = |from, before| Filter {
        accepted_from: Some(fx.after(from)),
        accepted_before: Some(fx.after(before)),
        ..Filter::default()
    };
    assert_eq!(fx.find(between(0, 1)).await, [id]);
    assert_eq!(fx.find(between(-1, 0)).await, []);
    assert_eq!(fx.find(between(1, 2)).await, []);
}

async fn a_change_meets_nothing_newer_than_what_was_seen(fx: &Fixture) {
    let id = fx.place(order(), Status::DeadLettered).await.id;
    let seen = |generation| Filter { generation: Some(generation), ..Filter::of_ids([id]) };
    let requeue = async |filter: Filter| done(fx.store.change(Change::Requeue, &filter, 10).await).changed;
    assert_eq!(requeue(seen(1)).await, 0, "it was not requeued yet");
    assert_eq!(requeue(seen(0)).await, 1);
    assert_eq!(fx.find(seen(0)).await, []);
    assert_eq!(fx.find(seen(1)).await, [id]);
    assert_eq!(requeue(seen(0)).await, 0, "somebody was faster");
    // The same without an id, which the stores look for in another way.
    assert_eq!(fx.find(Filter { generation: Some(1), ..Filter::default() }).await, [id]);
}

async fn a_reason_is_that_of_the_last_outcome(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let with = |reason| Filter { reason: Some(reason), ..Filter::default() };
    fx.retry(&fx.lease_one().await, 0).await;
    assert_eq!(fx.find(with(Reason::Failed)).await, [id]);
    fx.dead_letter(&fx.lease_one().await).await;
    assert_eq!(fx.find(with(Reason::Failed)).await, []);
    assert_eq!(fx.find(with(Reason::Permanent)).await, [id]);
    fx.change(Change::Requeue, [id]).await;
    assert_eq!(fx.find(with(Reason::Operator)).await, [id]);
    fx.complete(&fx.lease_one().await).await;
    assert_eq!(fx.find(with(Reason::Operator)).await, []);
}

async fn page(
    fx: &Fixture,
    size: usize,
    after: Option<Cursor>,
    order: PageOrder,
) -> (Vec<MessageId>, Option<Cursor>) {
    let found = done(fx.store.query(&Filter::default(), &PageRequest { size, after, order }).await);
    (found.items.iter().map(|record| record.envelope.id).collect(), found.next)
}

async fn pages_follow_acceptance_order_both_ways(fx: &Fixture) {
    let mut expected = fx.accept_all((0..7).map(|n| order().due_in(100 - n))).await;
    for order in [PageOrder::OldestFirst, PageOrder::NewestFirst] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (items, next) = page(fx, 3, after, order).await;
            assert!(!items.is_empty());
            found.extend(items);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected);
        expected.reverse();
    }
}

async fn a_last_page_says_so(fx: &Fixture) {
    assert_eq!(page(fx, 3, None, PageOrder::OldestFirst).await, (vec![], None));
    fx.accept_all((0..3).map(|_| order())).await;
    assert_eq!(page(fx, 3, None, PageOrder::OldestFirst).await.1, None);
    assert_eq!(page(fx, 3, None, PageOrder::NewestFirst).await.1, None);
    assert!(page(fx, 2, None, PageOrder::NewestFirst).await.1.is_some());
}

async fn pages_stay_stable_while_messages_come_and_go(fx: &Fixture) {
    let old = fx.accept_all((0..6).map(|_| order())).await;
    let (first, oldest) = page(fx, 2, None, PageOrder::OldestFirst).await;
    let (_, newest) = page(fx, 2, None, PageOrder::NewestFirst).await;
    assert_eq!(first, old[..2]);
    let new = fx.accept_all((0..2).map(|_| order())).await;
    // The rows on which both pages ended, and one on the next page.
    fx.change(Change::Purge, [old[1], old[4], old[3]]).await;
    let forward = page(fx, 10, oldest, PageOrder::OldestFirst).await.0;
    assert_eq!(forward, [old[2], old[5], new[0], new[1]]);
    assert_eq!(page(fx, 10, newest, PageOrder::NewestFirst).await.0, [old[2], old[0]]);
}

async fn page_sizes_out_of_bounds_are_refused(fx: &Fixture) {
    for size in [0, PAGE_MAX + 1, usize::MAX] {
        let page = PageRequest { size, ..PageRequest::default() };
        let error = fx.store.query(&Filter::default(), &page).await.expect_err("out of bounds");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
    }
}

async fn the_largest_page_is_allowed(fx: &Fixture) {
    let accepted = fx.accept_all((0..=PAGE_MAX).map(|_| order())).await;
    let (found, next) = page(fx, PAGE_MAX, None, PageOrder::OldestFirst).await;
    assert_eq!(found, accepted[..PAGE_MAX]);
    assert_eq!(page(fx, PAGE_MAX, next, PageOrder::OldestFirst).await, (accepted[PAGE_MAX..].to_vec(), None));
}

async fn a_message_is_found_with_its_history_by_id(fx: &Fixture) {
    let placed = fx.place(order(), Status::DeadLettered).await;
    let found = done(fx.store.get(placed.id).await);
    assert_eq!((found.len(), found[0].history.len()), (1, 1));
    assert_eq!(found[0].record.envelope, placed.lease.expect("it was leased").envelope);
}

async fn a_parked_message_names_the_head_it_waits_behind(fx: &Fixture) {
    let accepted = fx.accept_all((0..3).map(|_| order().session("s").due_in(5))).await;
    let parked = fx.record(accepted[2]).await;
    assert_eq!((parked.status, parked.waits_behind), (Status::Parked, Some(accepted[0])));
    assert_eq!(parked.due_at, Some(fx.after(5)));
    assert_eq!(fx.record(accepted[0]).await.waits_behind, None);
    fx.change(Change::Cancel, [accepted[0]]).await;
    assert_eq!(fx.record(accepted[2]).await.waits_behind, Some(accepted[1]));
}
