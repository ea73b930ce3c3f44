//! Rows that cannot be read, and invariants that do not hold.

use crate::support::{Place, accept, claim, lease, order, settle};
use mailslot_core::store::{Change, Exchange, Filter, PageRequest};
use mailslot_core::{Disposition, InboxStore as _, OperatorStore as _, Reason, Status, StoreErrorKind};
use mailslot_store_postgres::PostgresStore;

/// What is damaged in a message, and the field that is named for it.
const DAMAGES: &[(&str, &str)] = &[
    ("UPDATE mailslot.message SET tenant = 'a' || chr(7) WHERE seq = 2", "tenant"),
    ("UPDATE mailslot.message SET session = ' ' WHERE seq = 2", "session"),
    ("UPDATE mailslot.message SET headers = '{' WHERE seq = 2", "headers"),
    ("UPDATE mailslot.message SET content_type = '' WHERE seq = 2", "content_type"),
    ("UPDATE mailslot.message SET traceparent = 'zero' WHERE seq = 2", "traceparent"),
    ("UPDATE mailslot.message SET causation = 'alone' WHERE seq = 2", "causation"),
    ("UPDATE mailslot.message SET accepted_at = 9223372036854775807 WHERE seq = 2", "accepted_at"),
];

#[tokio::test]
async fn a_message_that_cannot_be_read_is_refused_and_stops_no_batch() {
    for (damage, field) in DAMAGES {
        let place = Place::new();
        let store = place.open().await;
        let ids = accept(&store, [order(), order(), order()]).await;
        place.by_hand(damage).await;
        let exchange = Exchange { settlements: Vec::new(), lease: Some(claim(2)) };
        let exchanged = store.exchange(exchange).await.expect("it can be had");
        let mut leased: Vec<_> = exchanged.leased.iter().map(|leased| leased.envelope.id).collect();
        leased.extend(lease(&store, 2).await.iter().map(|leased| leased.envelope.id));
        assert_eq!((leased, exchanged.refused), (vec![ids[0], ids[2]], vec![ids[1]]), "{field}");
        let page = store.query(&Filter::default(), &PageRequest::default()).await.expect("it can be had");
        let shown = &page.items[1];
        assert_eq!(
            (shown.status, shown.reason),
            (Status::DeadLettered, Some(Reason::Undecodable)),
            "{field}"
        );
        let error = store.get(ids[1]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert!(error.to_string().contains(field), "{error}");
        assert_eq!(store.get(ids[0]).await.expect("it can be had").len(), 1);
    }
}

async fn broken(store: &PostgresStore) -> Vec<&'static str> {
    store.check().await.expect("it can be had").into_iter().map(|violation| violation.invariant).collect()
}

/// Ways to break a store in which there are the messages `{head}` and `{parked}` of a session, `{leased}`, `{dead}` and
/// `{plain}`, which is pending.
const BREAKS: &[(&str, &[&str])] = &[
    ("DELETE FROM mailslot.partition WHERE lower > 0", &["partitions"]),
    ("UPDATE mailslot.partition SET upper = upper + 1 WHERE lower > 0", &["partitions"]),
    ("DROP TABLE mailslot.outcome_8388608", &["partitions"]),
    ("SELECT setval('mailslot.message_seq', 16777000)", &["partitions"]),
    (
        "INSERT INTO mailslot.suspended SELECT seq, NULL, lane, 0, 0, priority, key_policy, '{}' \
         FROM mailslot.message WHERE seq = {plain}",
        &["one_place", "counts"],
    ),
    (
        "INSERT INTO mailslot.lease (until, owner, label, open, seqs, settled) \
         SELECT until, owner, label, 1, ARRAY[{leased}::bigint], '0' FROM mailslot.lease",
        &["one_place", "counts"],
    ),
    ("DELETE FROM mailslot.message WHERE seq = {plain}", &["place_of_nothing"]),
    ("INSERT INTO mailslot.ledger VALUES ('key', 77, 0, '', 0)", &["place_of_nothing"]),
    ("INSERT INTO mailslot.outcome VALUES (77, 0, 0, 1, 1)", &["place_of_nothing"]),
    ("DELETE FROM mailslot.ready WHERE seq = {plain}", &["member_without_lease", "counts"]),
    ("DELETE FROM mailslot.lease", &["member_without_lease", "counts"]),
    (
        "UPDATE mailslot.session SET head = {parked}",
        &["session_without_head", "one_in_flight", "parked_waits"],
    ),
    ("UPDATE mailslot.session SET key = 't'", &["session_without_head"]),
    (
        "UPDATE mailslot.ready SET session = NULL WHERE seq = {head}",
        &["session_without_head", "one_in_flight"],
    ),
    ("DELETE FROM mailslot.session", &["one_in_flight", "parked_waits"]),
    ("UPDATE mailslot.outcome SET kind = 4 WHERE kind = 8", &["end_is_last"]),
    (
        "INSERT INTO mailslot.outcome VALUES ({plain}, 0, 0, 1, 2), ({plain}, 0, 0, 1, 4)",
        &["one_place", "one_end", "counts"],
    ),
    ("UPDATE mailslot.message SET tenant = ' ' WHERE seq = {plain}", &["readable"]),
    ("UPDATE mailslot.message SET headers = '{\"a\": 1}' WHERE seq = {plain}", &["readable"]),
    ("UPDATE mailslot.message SET accepted_at = 9223372036854775807 WHERE seq = {plain}", &["readable"]),
    ("UPDATE mailslot.ready SET priority = 2 WHERE seq = {plain}", &["copies"]),
    ("INSERT INTO mailslot.tally VALUES (1, 'leased', 1)", &["counts"]),
    ("INSERT INTO mailslot.tally VALUES (1, 'skipped', 3)", &["counts"]),
    ("DELETE FROM mailslot.tally", &["counts"]),
    ("DROP INDEX mailslot.message_id", &["schema"]),
];

/// A store with a message in every kind of place, and one with a history.
struct Populated {
    place: Place,
    store: PostgresStore,
    seqs: [i64; 5],
}

impl Populated {
    async fn new() -> Self {
        let place = Place::new();
        let store = place.open().await;
        let mut ids = accept(&store, [order().session("s").due_in(60), order().session("s")]).await;
        ids.extend(accept(&store, [order().header("a \"quoted\" \\ name", "\u{e9}"), order()]).await);
        let leased = lease(&store, 2).await;
        let dead = Disposition::DeadLetter { reason: Reason::Permanent };
        settle(&store, &leased[1], dead.clone()).await;
        store.change(Change::Requeue, &Filter::of_ids([ids[3]]), 1).await.expect("it can be had");
        settle(&store, &lease(&store, 1).await[0], dead).await;
        ids.extend(accept(&store, [order()]).await);
        let page = store.query(&Filter::of_ids(ids), &PageRequest::default()).await.expect("it can be had");
        let seqs: Vec<_> = page.items.iter().map(|record| record.envelope.seq.0).collect();
        Self { place, store, seqs: seqs.try_into().expect("it can be had") }
    }

    async fn damage(&self, statements: &str) {
        let names = ["{head}", "{parked}", "{leased}", "{dead}", "{plain}"];
        let pairs = names.iter().zip(self.seqs);
        let statements =
            pairs.fold(statements.to_owned(), |text, (name, seq)| text.replace(name, &seq.to_string()));
        self.place.by_hand(&statements).await;
    }
}

#[tokio::test]
async fn every_broken_invariant_is_found() {
    for (damage, expected) in BREAKS {
        let populated = Populated::new().await;
        assert_eq!(broken(&populated.store).await, [""; 0]);
        populated.damage(damage).await;
        assert_eq!(broken(&populated.store).await, *expected, "{damage}");
    }
}

#[tokio::test]
async fn what_is_called_repairable_is_repaired_and_what_follows_from_it() {
    let repairable = [
        "DELETE FROM mailslot.lease",
        "DELETE FROM mailslot.tally",
        "DELETE FROM mailslot.ready WHERE seq = {plain}",
        "DELETE FROM mailslot.ready WHERE seq = {head}",
        "DELETE FROM mailslot.parked",
        "DELETE FROM mailslot.ready; DELETE FROM mailslot.parked; DELETE FROM mailslot.lease",
    ];
    for damage in repairable {
        let populated = Populated::new().await;
        populated.damage(damage).await;
        let store = &populated.store;
        let mut found = store.check().await.expect("it can be had");
        found.retain(|violation| violation.repairable);
        assert!(!found.is_empty(), "{damage}");
        assert_eq!(store.repair().await.expect("it can be had"), found, "{damage}");
        assert_eq!(broken(store).await, [""; 0], "{damage}");
        assert_eq!(store.repair().await.expect("it can be had"), []);
    }
}

#[tokio::test]
async fn an_orphan_of_a_lost_lease_row_is_pending_again() {
    let place = Place::new();
    let store = place.open().await;
    let ids = accept(&store, [order().session("s"), order().session("s")]).await;
    lease(&store, 1).await;
    place.by_hand("DELETE FROM mailslot.lease; DELETE FROM mailslot.parked").await;
    store.repair().await.expect("it can be had");
    let detail = &store.get(ids[0]).await.expect("it can be had")[0];
    assert_eq!((detail.record.status, detail.record.reason), (Status::Pending, Some(Reason::LeaseExpired)));
    let behind = &store.get(ids[1]).await.expect("it can be had")[0].record;
    assert_eq!((behind.status, behind.waits_behind), (Status::Parked, Some(ids[0])));
    let again = lease(&store, 1).await;
    assert_eq!((again[0].envelope.id, again[0].attempt.number), (ids[0], 2));
}
