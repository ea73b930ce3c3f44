//! Rows that cannot be read, and invariants that do not hold.

use crate::support::{accept, by_hand, claim, lease, open, order, place};
use mailslot_core::store::{Exchange, Filter, PageRequest};
use mailslot_core::{InboxStore as _, OperatorStore as _, Reason, Status, StoreErrorKind};
use mailslot_store_sqlite::SqliteStore;

/// What is damaged in a message, and the field that is named for it.
const DAMAGES: &[(&str, &str)] = &[
    ("UPDATE mailslot_message SET priority = 9 WHERE seq = 2", "priority"),
    ("UPDATE mailslot_message SET tenant = 'a' || char(7) WHERE seq = 2", "tenant"),
    ("UPDATE mailslot_message SET session = ' ' WHERE seq = 2", "session"),
    ("UPDATE mailslot_message SET headers = '{' WHERE seq = 2", "headers"),
    ("UPDATE mailslot_message SET content_type = CAST(x'ff' AS TEXT) WHERE seq = 2", "content_type"),
    ("UPDATE mailslot_message SET traceparent = 'zero' WHERE seq = 2", "traceparent"),
    ("UPDATE mailslot_message SET causation = 'alone' WHERE seq = 2", "causation"),
    ("UPDATE mailslot_message SET accepted_at = 9223372036854775807 WHERE seq = 2", "accepted_at"),
];

#[tokio::test]
async fn a_message_that_cannot_be_read_is_refused_and_stops_no_batch() {
    for (damage, field) in DAMAGES {
        let (_directory, path) = place();
        let store = open(&path).await;
        let ids = accept(&store, [order(), order(), order()]).await;
        by_hand(&path, damage).await;
        let exchange = Exchange { settlements: Vec::new(), lease: Some(claim(2)) };
        let exchanged = store.exchange(exchange).await.unwrap();
        let leased: Vec<_> = exchanged.leased.iter().map(|leased| leased.envelope.id).collect();
        assert_eq!((leased, exchanged.refused), (vec![ids[0], ids[2]], vec![ids[1]]), "{field}");
        let page = store.query(&Filter::default(), &PageRequest::default()).await.unwrap();
        let shown = &page.items[1];
        assert_eq!(
            (shown.status, shown.reason),
            (Status::DeadLettered, Some(Reason::Undecodable)),
            "{field}"
        );
        let error = store.get(ids[1]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert!(error.to_string().contains(field), "{error}");
        assert_eq!(store.get(ids[0]).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_pending_place_without_a_message_is_refused_once() {
    let (_directory, path) = place();
    let store = open(&path).await;
    accept(&store, [order(), order()]).await;
    by_hand(&path, "DELETE FROM mailslot_message WHERE seq = 1").await;
    let exchange = Exchange { settlements: Vec::new(), lease: Some(claim(10)) };
    let exchanged = store.exchange(exchange.clone()).await.unwrap();
    assert_eq!((exchanged.leased.len(), exchanged.refused.len()), (1, 1));
    let exchanged = store.exchange(exchange).await.unwrap();
    assert_eq!((exchanged.leased.len(), exchanged.refused.len()), (0, 0));
}

async fn broken(store: &SqliteStore) -> Vec<&'static str> {
    store.check().await.unwrap().into_iter().map(|violation| violation.invariant).collect()
}

/// A way to break a store with, in this order: a head, one parked behind it, a leased, a dead, a plain message.
const BREAKS: &[(&str, &[&str])] = &[
    ("DELETE FROM mailslot_ready WHERE seq = 5", &["one_place", "counts"]),
    (
        "INSERT INTO mailslot_suspended SELECT seq, lane, priority, 0, 0, NULL, key_policy, '{}' \
         FROM mailslot_message WHERE seq = 5",
        &["one_place", "counts"],
    ),
    ("DELETE FROM mailslot_message WHERE seq = 5", &["place_of_nothing"]),
    ("INSERT INTO mailslot_ledger VALUES (zeroblob(32), 77, zeroblob(32), 0, 0)", &["place_of_nothing"]),
    ("DELETE FROM mailslot_lease", &["member_without_lease"]),
    ("UPDATE mailslot_session SET head = 2", &["session_without_head", "one_in_flight", "parked_waits"]),
    ("UPDATE mailslot_ready SET session = NULL WHERE seq = 1", &["one_in_flight"]),
    ("DELETE FROM mailslot_session", &["one_in_flight", "parked_waits"]),
    ("UPDATE mailslot_outcome SET current = 1 WHERE kind = 8", &["one_place", "end_is_last", "counts"]),
    ("UPDATE mailslot_message SET priority = 9 WHERE seq = 5", &["readable", "copies"]),
    ("UPDATE mailslot_ready SET priority = 2 WHERE seq = 5", &["copies"]),
    ("UPDATE mailslot_tally SET messages = messages + 1 WHERE status = 'leased'", &["counts"]),
    ("DELETE FROM mailslot_tally", &["counts"]),
    ("INSERT INTO mailslot_tally VALUES (1, 'skipped', 3)", &["counts"]),
];

/// A store with a message in every kind of place, and one with a history.
async fn populated(path: &std::path::Path) -> SqliteStore {
    use mailslot_core::store::Change;
    let store = open(path).await;
    accept(&store, [order().session("s").due_in(60), order().session("s")]).await;
    accept(&store, [order(), order()]).await;
    let leased = lease(&store, 2).await;
    let settlement = mailslot_core::Settlement {
        disposition: mailslot_core::Disposition::DeadLetter { reason: Reason::Permanent },
        ..crate::support::complete(&leased[1])
    };
    let dead = leased[1].envelope.id;
    store.exchange(Exchange { settlements: vec![settlement.clone()], lease: None }).await.unwrap();
    store.change(Change::Requeue, &Filter::of_ids([dead]), 1).await.unwrap();
    let again = lease(&store, 1).await;
    let settlement =
        mailslot_core::Settlement { lease: again[0].lease, attempt: again[0].attempt, ..settlement };
    store.exchange(Exchange { settlements: vec![settlement], lease: None }).await.unwrap();
    accept(&store, [order()]).await;
    store
}

#[tokio::test]
async fn every_broken_invariant_is_found() {
    for (damage, expected) in BREAKS {
        let (_directory, path) = place();
        let store = populated(&path).await;
        assert_eq!(broken(&store).await, [""; 0]);
        by_hand(&path, damage).await;
        assert_eq!(broken(&store).await, *expected, "{damage}");
    }
}

#[tokio::test]
async fn what_is_called_repairable_is_repaired() {
    let repairable = ["DELETE FROM mailslot_lease", "DELETE FROM mailslot_tally"];
    for damage in repairable {
        let (_directory, path) = place();
        let store = populated(&path).await;
        by_hand(&path, damage).await;
        let found = store.check().await.unwrap();
        assert!(found.iter().all(|violation| violation.repairable), "{found:?}");
        assert_eq!(store.repair().await.unwrap(), found);
        assert_eq!(broken(&store).await, [""; 0]);
        assert_eq!(store.repair().await.unwrap(), []);
    }
}

#[tokio::test]
async fn an_orphan_of_a_lost_lease_row_is_pending_again() {
    let (_directory, path) = place();
    let store = open(&path).await;
    let ids = accept(&store, [order()]).await;
    lease(&store, 1).await;
    by_hand(&path, "DELETE FROM mailslot_lease").await;
    store.repair().await.unwrap();
    let detail = &store.get(ids[0]).await.unwrap()[0];
    assert_eq!((detail.record.status, detail.record.reason), (Status::Pending, Some(Reason::LeaseExpired)));
    assert_eq!(lease(&store, 1).await[0].attempt.number, 2);
}
