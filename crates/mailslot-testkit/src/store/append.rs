//! Appending: receipts, order, groups, bounds.

use super::Fixture;
use super::verbs::{claim, done, ids, order, receipt};
use crate::message::message;
use mailslot_core::limits::APPEND_BATCH_MAX;
use mailslot_core::store::{AppendGroup, Appended, Filter};
use mailslot_core::{AcceptOutcome, Status, StoreErrorKind};

cases![
    a_receipt_names_the_message,
    a_message_counts_as_accepted_at_the_stores_time,
    messages_of_a_group_keep_their_order,
    groups_keep_their_order,
    an_empty_append_answers_with_nothing,
    an_empty_group_between_others_answers_with_nothing,
    a_group_with_a_conflict_is_stored_not_at_all,
    a_refused_group_keeps_no_other_group_out,
    a_refused_group_leaves_its_keys_and_ids_free,
    the_largest_batch_is_accepted_in_order,
    more_than_the_largest_batch_is_refused_as_a_whole,
    messages_without_key_or_id_never_deduplicate,
    concurrent_accepts_are_all_stored,
];

async fn a_receipt_names_the_message(fx: &Fixture) {
    let built = message("order@3").tenant("acme").endpoint("billing").correlation("c-1").build();
    let answers = done(fx.store.append(vec![AppendGroup::from(built.clone())]).await);
    let receipt = answers[0][0].receipt().expect("stored");
    assert_eq!(receipt.id, built.id);
    assert_eq!(receipt.contract, built.contract);
    assert_eq!(receipt.endpoint, built.metadata.endpoint);
    assert_eq!(receipt.tenant, built.metadata.tenant);
    assert_eq!(receipt.trace, built.metadata.trace);
    assert_eq!(receipt.outcome, AcceptOutcome::Accepted);
    assert_eq!(receipt.accepted_at, fx.now());
}

async fn a_message_counts_as_accepted_at_the_stores_time(fx: &Fixture) {
    fx.advance(1_234);
    assert_eq!(done(fx.store.now().await), fx.now());
    let receipt = fx.accept(order()).await;
    assert_eq!(receipt.accepted_at, fx.now());
    assert_eq!(fx.record(receipt.id).await.envelope.accepted_at, fx.now());
}

async fn messages_of_a_group_keep_their_order(fx: &Fixture) {
    let accepted = fx.accept_all((0..20).map(|_| order())).await;
    assert_eq!(fx.find(Filter::default()).await, accepted);
    assert_eq!(ids(&fx.lease(20).await), accepted);
}

async fn groups_keep_their_order(fx: &Fixture) {
    let answers = fx.append(vec![vec![order()], vec![order(), order()], vec![order()]]).await;
    assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1]);
    let accepted: Vec<_> = answers.into_iter().flatten().map(|answer| receipt(answer).id).collect();
    assert_eq!(fx.find(Filter::default()).await, accepted);
}

async fn an_empty_append_answers_with_nothing(fx: &Fixture) {
    assert_eq!(fx.append(Vec::new()).await, Vec::<Vec<Appended>>::new());
}

async fn an_empty_group_between_others_answers_with_nothing(fx: &Fixture) {
    let answers = fx.append(vec![vec![order()], Vec::new(), vec![order()]]).await;
    assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1]);
}

async fn a_group_with_a_conflict_is_stored_not_at_all(fx: &Fixture) {
    let first = fx.accept(order().key("taken")).await;
    let answers = fx.append_group([order(), order().key("taken").payload("other"), order()]).await;
    let conflict = Appended::Conflict { first: first.id, field: "idempotency_key" };
    assert_eq!(answers, [Appended::NotStored, conflict, Appended::NotStored]);
    assert_eq!(fx.find(Filter::default()).await, [first.id]);
}

async fn a_refused_group_keeps_no_other_group_out(fx: &Fixture) {
    let first = fx.accept(order().key("taken")).await;
    let answers = fx
        .append(vec![vec![order()], vec![order(), order().key("taken").payload("other")], vec![order()]])
        .await;
    let before = answers[0][0].receipt().expect("the group before is stored").id;
    let after = answers[2][0].receipt().expect("the group behind is stored").id;
    assert_eq!(answers[1][0], Appended::NotStored);
    assert_eq!(fx.find(Filter::default()).await, [first.id, before, after]);
}

async fn a_refused_group_leaves_its_keys_and_ids_free(fx: &Fixture) {
    let id = order().build().id;
    fx.accept(order().key("taken")).await;
    let refused = vec![order().key("free"), order().id(id), order().key("taken").payload("other")];
    let answers = fx.append(vec![refused, vec![order().key("free").payload("new")]]).await;
    assert!(answers[1][0].receipt().expect("the key is free in the same append").is_new());
    assert!(fx.accept(order().id(id).payload("new")).await.is_new());
}

async fn the_largest_batch_is_accepted_in_order(fx: &Fixture) {
    let accepted = fx.accept_all((0..APPEND_BATCH_MAX).map(|n| order().key(&format!("k{n}")))).await;
    assert_eq!(accepted.len(), APPEND_BATCH_MAX);
    assert_eq!(fx.find(Filter::default()).await, accepted);
    assert_eq!(ids(&fx.lease(1_000).await), accepted[..1_000]);
}

async fn more_than_the_largest_batch_is_refused_as_a_whole(fx: &Fixture) {
    let group = |n| AppendGroup { messages: (0..n).map(|_| order().build()).collect() };
    let error =
        fx.store.append(vec![group(APPEND_BATCH_MAX), group(1)]).await.expect_err("too many messages");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert_eq!(fx.find(Filter::default()).await, []);
}

async fn messages_without_key_or_id_never_deduplicate(fx: &Fixture) {
    let accepted = fx.accept_all([order(), order()]).await;
    let again = fx.accept(order()).await;
    assert!(again.is_new());
    assert_eq!(fx.find(Filter::default()).await, [accepted[0], accepted[1], again.id]);
}

async fn concurrent_accepts_are_all_stored(fx: &Fixture) {
    let accept = |n: usize| {
        let store = std::sync::Arc::clone(&fx.store);
        let message = order().key(&format!("k{n}")).build();
        tokio::spawn(async move { store.append(vec![message.into()]).await })
    };
    let accepting: Vec<_> = (0..64).map(accept).collect();
    for accepted in accepting {
        let answers = done(accepted.await.expect("an accept does not panic"));
        assert!(answers[0][0].receipt().expect("stored").is_new());
    }
    assert_eq!(fx.claim(claim("order")).await.leased.len(), 64);
    assert_eq!(fx.find(Filter { statuses: Some(vec![Status::Leased]), ..Filter::default() }).await.len(), 64);
}
