//! Deduplication answers three ways: accepted, already accepted, conflict.

use super::Fixture;
use super::verbs::{done, order, receipt};
use crate::message::{MessageBuilder, message};
use mailslot_core::store::{Appended, Filter};
use mailslot_core::{AcceptOutcome, MessageId, Priority, Receipt, Status};

cases![
    a_repeated_key_answers_with_the_first_receipt,
    a_repeated_id_answers_with_the_first_receipt,
    a_duplicate_reports_the_present_status,
    a_repeated_key_with_other_content_is_a_conflict,
    a_repeated_id_with_other_content_is_a_conflict,
    a_conflict_can_be_told_to_return_the_first,
    the_same_bytes_under_another_contract_are_other_content,
    the_same_bytes_of_another_type_are_other_content,
    other_metadata_is_the_same_content,
    a_key_belongs_to_its_tenant,
    an_id_belongs_to_its_tenant,
    a_key_is_one_key_at_every_endpoint,
    where_id_and_key_disagree_the_id_wins,
    a_duplicate_by_id_does_not_take_its_key,
    a_key_and_an_id_with_the_same_text_are_two_things,
    duplicates_inside_a_group_are_recognised,
    a_conflict_inside_a_group_refuses_the_group,
    duplicates_across_groups_of_one_append_are_recognised,
    a_duplicate_within_an_append_tells_where_the_first_one_stands,
    a_group_mixes_known_and_new_messages,
    one_key_accepted_64_times_at_once_is_stored_once,
    groups_that_share_keys_at_once_store_each_key_once,
];

fn already(first: &Receipt, status: Status) -> Appended {
    Appended::Stored(Receipt { outcome: AcceptOutcome::AlreadyAccepted { status }, ..first.clone() })
}

async fn check_conflict(fx: &Fixture, first: MessageBuilder, second: MessageBuilder, field: &'static str) {
    let first = fx.accept(first).await;
    assert_eq!(fx.offer(second).await, Appended::Conflict { first: first.id, field });
    assert_eq!(fx.find(Filter::default()).await, [first.id]);
}

async fn check_duplicate(fx: &Fixture, first: MessageBuilder, second: MessageBuilder) {
    let first = fx.accept(first).await;
    fx.advance(5);
    assert_eq!(fx.offer(second).await, already(&first, Status::Pending));
    assert_eq!(fx.find(Filter::default()).await, [first.id]);
}

async fn check_both_new(fx: &Fixture, first: MessageBuilder, second: MessageBuilder) {
    assert!(fx.accept(first).await.is_new());
    assert!(fx.accept(second).await.is_new());
}

async fn a_repeated_key_answers_with_the_first_receipt(fx: &Fixture) {
    check_duplicate(fx, order().key("k"), order().key("k")).await;
}

async fn a_repeated_id_answers_with_the_first_receipt(fx: &Fixture) {
    let id = MessageId::generate();
    check_duplicate(fx, order().id(id), order().id(id)).await;
}

async fn a_duplicate_reports_the_present_status(fx: &Fixture) {
    for &status in Status::ALL {
        let (key, contract) = (format!("key-{status}"), format!("order-{status}"));
        let session = format!("session-{status}");
        let first = message(&contract).key(&key).session(&session);
        let placed = fx.place(first.clone(), status).await;
        let repeated = fx.accept(first).await;
        assert_eq!(repeated.id, placed.id);
        assert_eq!(repeated.outcome, AcceptOutcome::AlreadyAccepted { status });
    }
}

async fn a_repeated_key_with_other_content_is_a_conflict(fx: &Fixture) {
    check_conflict(fx, order().key("k"), order().key("k").payload("other"), "idempotency_key").await;
}

async fn a_repeated_id_with_other_content_is_a_conflict(fx: &Fixture) {
    let id = MessageId::generate();
    check_conflict(fx, order().id(id), order().id(id).payload("other"), "id").await;
}

async fn a_conflict_can_be_told_to_return_the_first(fx: &Fixture) {
    check_duplicate(fx, order().key("k"), order().key("k").payload("other").return_first()).await;
}

async fn the_same_bytes_under_another_contract_are_other_content(fx: &Fixture) {
    check_conflict(fx, order().key("a"), message("invoice").key("a"), "idempotency_key").await;
    let first = fx.accept(message("order@2").key("b")).await;
    let conflict = Appended::Conflict { first: first.id, field: "idempotency_key" };
    assert_eq!(fx.offer(message("order@3").key("b")).await, conflict);
}

async fn the_same_bytes_of_another_type_are_other_content(fx: &Fixture) {
    check_conflict(fx, order().key("k"), order().key("k").content_type("text/plain"), "idempotency_key")
        .await;
}

async fn other_metadata_is_the_same_content(fx: &Fixture) {
    let again =
        order().key("k").session("s").priority(Priority::Low).due_in(60).header("a", "b").correlation("c");
    check_duplicate(fx, order().key("k"), again).await;
}

async fn a_key_belongs_to_its_tenant(fx: &Fixture) {
    check_both_new(fx, order().tenant("acme").key("k"), order().tenant("umbrella").key("k").payload("other"))
        .await;
    assert!(fx.accept(order().key("k").payload("third")).await.is_new());
    assert!(!fx.accept(order().tenant("acme").key("k")).await.is_new());
}

async fn an_id_belongs_to_its_tenant(fx: &Fixture) {
    let id = MessageId::generate();
    check_both_new(fx, order().tenant("acme").id(id), order().tenant("umbrella").id(id).payload("other"))
        .await;
    assert!(fx.accept(order().id(id)).await.is_new());
    let found = done(fx.store.get(id).await);
    let tenants: Vec<_> =
        found.iter().map(|d| d.record.envelope.tenant.as_ref().map(ToString::to_string)).collect();
    assert_eq!(tenants, [Some("acme".to_owned()), Some("umbrella".to_owned()), None]);
}

async fn a_key_is_one_key_at_every_endpoint(fx: &Fixture) {
    check_duplicate(fx, order().key("k"), order().key("k").endpoint("billing")).await;
}

async fn where_id_and_key_disagree_the_id_wins(fx: &Fixture) {
    let id = MessageId::generate();
    let by_id = fx.accept(order().id(id)).await;
    fx.accept(order().key("k")).await;
    assert_eq!(fx.offer(order().id(id).key("k")).await, already(&by_id, Status::Pending));
    let conflict = Appended::Conflict { first: id, field: "id" };
    assert_eq!(fx.offer(order().id(id).key("k").payload("other")).await, conflict);
}

async fn a_duplicate_by_id_does_not_take_its_key(fx: &Fixture) {
    let id = MessageId::generate();
    fx.accept(order().id(id)).await;
    assert!(!fx.accept(order().id(id).key("k")).await.is_new());
    assert!(fx.accept(order().key("k").payload("other")).await.is_new());
}

async fn a_key_and_an_id_with_the_same_text_are_two_things(fx: &Fixture) {
    let id = MessageId::generate();
    check_both_new(fx, order().id(id), order().key(&id.to_string()).payload("other")).await;
}

async fn duplicates_inside_a_group_are_recognised(fx: &Fixture) {
    let id = MessageId::generate();
    let answers = fx.append_group([order().key("k"), order().key("k"), order().id(id), order().id(id)]).await;
    let receipts: Vec<_> = answers.into_iter().map(receipt).collect();
    assert_eq!(receipts.iter().map(Receipt::is_new).collect::<Vec<_>>(), [true, false, true, false]);
    assert_eq!(receipts[1].id, receipts[0].id);
    assert_eq!(fx.find(Filter::default()).await, [receipts[0].id, id]);
}

async fn a_conflict_inside_a_group_refuses_the_group(fx: &Fixture) {
    let answers = fx.append_group([order().key("k"), order().key("k").payload("other")]).await;
    assert_eq!(answers[0], Appended::NotStored);
    assert!(matches!(answers[1], Appended::Conflict { field: "idempotency_key", .. }), "{answers:?}");
    assert!(fx.accept(order().key("k")).await.is_new());
}

async fn duplicates_across_groups_of_one_append_are_recognised(fx: &Fixture) {
    let answers = fx
        .append(vec![vec![order().key("k")], vec![order().key("k")], vec![order().key("k").payload("other")]])
        .await;
    let first = answers[0][0].receipt().expect("stored");
    assert!(first.is_new());
    assert_eq!(answers[1], [already(first, Status::Pending)]);
    assert_eq!(answers[2], [Appended::Conflict { first: first.id, field: "idempotency_key" }]);
    assert_eq!(fx.find(Filter::default()).await, [first.id]);
}

async fn a_group_mixes_known_and_new_messages(fx: &Fixture) {
    let id = MessageId::generate();
    let by_key = fx.accept(order().key("k")).await;
    let by_id = fx.accept(order().id(id)).await;
    let answers = fx.append_group([order().key("k"), order(), order().id(id)]).await;
    assert_eq!(answers[0], already(&by_key, Status::Pending));
    assert_eq!(answers[2], already(&by_id, Status::Pending));
    let new = answers[1].receipt().expect("stored");
    assert!(new.is_new());
    assert_eq!(fx.find(Filter::default()).await, [by_key.id, id, new.id]);
}

/// Appends each group at the same time as the others.
async fn append_at_once(fx: &Fixture, groups: Vec<Vec<MessageBuilder>>) -> Vec<Receipt> {
    let append = |group: Vec<MessageBuilder>| {
        let store = std::sync::Arc::clone(&fx.store);
        let messages = group.into_iter().map(MessageBuilder::build).collect();
        tokio::spawn(async move { store.append(vec![mailslot_core::store::AppendGroup { messages }]).await })
    };
    let appending: Vec<_> = groups.into_iter().map(append).collect();
    let mut receipts = Vec::new();
    for answers in appending {
        let answers = done(answers.await.expect("an append does not panic"));
        receipts.extend(answers.into_iter().flatten().map(receipt));
    }
    receipts
}

async fn one_key_accepted_64_times_at_once_is_stored_once(fx: &Fixture) {
    let receipts = append_at_once(fx, (0..64).map(|_| vec![order().key("k")]).collect()).await;
    assert_eq!(receipts.iter().filter(|receipt| receipt.is_new()).count(), 1);
    let stored = fx.find(Filter::default()).await;
    assert_eq!(stored.len(), 1);
    assert!(receipts.iter().all(|receipt| receipt.id == stored[0]));
}

async fn groups_that_share_keys_at_once_store_each_key_once(fx: &Fixture) {
    let group = |n: usize| (0..8).map(|k| order().key(&format!("k{}", (k + n) % 12))).collect();
    let receipts = append_at_once(fx, (0..24).map(group).collect()).await;
    assert_eq!(receipts.len(), 24 * 8);
    assert_eq!(receipts.iter().filter(|receipt| receipt.is_new()).count(), 12);
    assert_eq!(fx.find(Filter::default()).await.len(), 12);
}

async fn a_duplicate_within_an_append_tells_where_the_first_one_stands(fx: &Fixture) {
    let head = || order().session("s").key("head");
    let behind = || order().session("s").key("behind");
    let groups = [head(), behind(), head(), behind()].map(|message| vec![message]).to_vec();
    let answers = fx.append(groups).await;
    let outcomes: Vec<_> = answers.into_iter().flatten().map(|answer| receipt(answer).outcome).collect();
    let known = |status| AcceptOutcome::AlreadyAccepted { status };
    let expected =
        [AcceptOutcome::Accepted, AcceptOutcome::Accepted, known(Status::Pending), known(Status::Parked)];
    assert_eq!(outcomes, expected);
}
