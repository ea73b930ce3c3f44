//! The inbox in the application's transactions.

use crate::support::{accept, by_hand, complete, group, lease, open, order, place, raw};
use mailslot_core::handler::{Cancellation, Context, EnlistedTransaction, Extensions, FromMessageParts};
use mailslot_core::store::{Exchange, Leased, Settled};
use mailslot_core::{Disposition, InboxStore as _, OperatorStore as _, Settlement, Status, StoreErrorKind};
use mailslot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx};
use sqlx::Connection as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

async fn with_application(path: &Path) -> SqliteStore {
    let store = open(path).await;
    by_hand(path, "CREATE TABLE effect (text TEXT UNIQUE)").await;
    store
}

async fn effects(path: &Path) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM effect").fetch_one(&mut raw(path).await).await.unwrap()
}

async fn write_effect(db: &mut sqlx::SqliteConnection, text: &str) {
    sqlx::query("INSERT INTO effect VALUES (?)").bind(text).execute(db).await.unwrap();
}

#[tokio::test]
async fn an_accept_commits_and_rolls_back_with_the_callers_changes() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    let mut db = raw(&path).await;

    let mut tx = db.begin().await.unwrap();
    store.append_in(&mut tx, vec![group([order().session("s"), order().key("k")])]).await.unwrap();
    write_effect(&mut tx, "rolled back").await;
    tx.rollback().await.unwrap();
    assert_eq!((effects(&path).await, store.counts().await.unwrap().len()), (0, 0));

    let mut tx = db.begin().await.unwrap();
    let answers =
        store.append_in(&mut tx, vec![group([order().session("s"), order().key("k")])]).await.unwrap();
    assert!(answers[0].iter().all(|answer| answer.receipt().is_some_and(mailslot_core::Receipt::is_new)));
    write_effect(&mut tx, "committed").await;
    tx.commit().await.unwrap();
    assert_eq!((effects(&path).await, lease(&store, 10).await.len()), (1, 2));
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn an_accept_after_a_rolled_back_one_knows_its_lane() {
    let (_directory, path) = place();
    let store = open(&path).await;
    let mut db = raw(&path).await;
    let mut tx = db.begin().await.unwrap();
    store.append_in(&mut tx, vec![group([order()])]).await.unwrap();
    tx.rollback().await.unwrap();
    accept(&store, [order()]).await;
    assert_eq!(lease(&store, 10).await.len(), 1);
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_database_without_an_inbox_is_a_clear_error() {
    let (_directory, path) = place();
    let store = open(&path).await;
    let (_other_directory, other) = place();
    let mut db = raw(&other).await;
    let error = store.append_in(&mut db, vec![group([order()])]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("tables are missing"), "{error}");
}

#[tokio::test]
async fn a_failed_accept_leaves_the_callers_transaction_usable() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    let mut db = raw(&path).await;
    let mut tx = db.begin().await.unwrap();
    write_effect(&mut tx, "kept").await;
    let too_many = vec![group((0..=mailslot_core::limits::APPEND_BATCH_MAX).map(|_| order()))];
    assert_eq!(store.append_in(&mut tx, too_many).await.unwrap_err().kind(), StoreErrorKind::Invalid);
    sqlx::raw_sql("DROP VIEW mailslot_record").execute(&mut *tx).await.unwrap();
    assert!(store.append_in(&mut tx, vec![group([order().key("k")])]).await.is_err());
    write_effect(&mut tx, "kept too").await;
    tx.commit().await.unwrap();
    assert_eq!(effects(&path).await, 2);
}

fn context(store: &SqliteStore, leased: &Leased) -> Context {
    let mut extensions = Extensions::new();
    extensions.insert(store.clone());
    Context::new(leased.clone(), Cancellation::new(), Arc::new(extensions))
}

/// Runs a handler that writes one effect and accepts a follow-up, and gives its transaction.
async fn handle(store: &SqliteStore, leased: &Leased, effect: &str) -> Arc<dyn EnlistedTransaction> {
    let context = context(store, leased);
    let mut tx = SqliteTx::from_message_parts(&context).await.unwrap();
    write_effect(&mut tx, effect).await;
    store.append_in(&mut tx, vec![group([order()])]).await.unwrap();
    drop(tx);
    context.take_enlisted().unwrap()
}

async fn status(store: &SqliteStore, leased: &Leased) -> Status {
    store.get(leased.envelope.id).await.unwrap()[0].record.status
}

#[tokio::test]
async fn a_handlers_changes_commit_with_its_completion() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    accept(&store, [order()]).await;
    let leased = lease(&store, 1).await.remove(0);
    let enlisted = handle(&store, &leased, "once").await;
    assert_eq!(effects(&path).await, 0);
    let settled = enlisted.settle_and_commit(complete(&leased)).await.unwrap();
    assert_eq!(settled, Settled::Applied(Status::Completed));
    assert_eq!((effects(&path).await, status(&store, &leased).await), (1, Status::Completed));
    // The follow-up is there, and the transaction is over.
    assert_eq!(lease(&store, 10).await.len(), 1);
    assert_eq!(enlisted.roll_back().await.unwrap_err().kind(), StoreErrorKind::Invalid);
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_handlers_changes_are_undone_with_another_verdict() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    accept(&store, [order()]).await;
    let leased = lease(&store, 1).await.remove(0);
    handle(&store, &leased, "never").await.roll_back().await.unwrap();
    let settlement = Settlement { disposition: Disposition::Release, ..complete(&leased) };
    let settled =
        store.exchange(Exchange { settlements: vec![settlement], lease: None }).await.unwrap().settled;
    assert_eq!(settled, [Settled::Applied(Status::Pending)]);
    assert_eq!(effects(&path).await, 0);
    assert_eq!(lease(&store, 10).await.len(), 1);
}

#[tokio::test]
async fn a_handlers_changes_are_undone_when_its_lease_is_lost() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    accept(&store, [order()]).await;
    let leased = lease(&store, 1).await.remove(0);
    let released = Settlement { disposition: Disposition::Release, ..complete(&leased) };
    store.exchange(Exchange { settlements: vec![released], lease: None }).await.unwrap();
    let enlisted = handle(&store, &leased, "too late").await;
    assert_eq!(enlisted.settle_and_commit(complete(&leased)).await.unwrap(), Settled::LeaseLost);
    assert_eq!((effects(&path).await, status(&store, &leased).await), (0, Status::Pending));
}

#[tokio::test]
async fn a_handler_that_is_dropped_frees_the_writer() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    accept(&store, [order()]).await;
    let leased = lease(&store, 1).await.remove(0);
    drop(handle(&store, &leased, "never").await);
    accept(&store, [order()]).await;
    let enlisted = handle(&store, &leased, "once").await;
    enlisted.settle_and_commit(complete(&leased)).await.unwrap();
    assert_eq!(effects(&path).await, 1);
}

#[tokio::test]
async fn a_transaction_that_sqlite_rolled_back_does_not_complete_its_message() {
    let (_directory, path) = place();
    let store = with_application(&path).await;
    accept(&store, [order()]).await;
    let leased = lease(&store, 1).await.remove(0);
    for _ in 0..2 {
        let context = context(&store, &leased);
        let mut tx = SqliteTx::from_message_parts(&context).await.unwrap();
        write_effect(&mut tx, "same").await;
        // A conflict that undoes the whole transaction, as a full disk would.
        let conflict = sqlx::query("INSERT OR ROLLBACK INTO effect VALUES ('same')").execute(&mut *tx).await;
        assert!(conflict.is_err());
        drop(tx);
        let settled = context.take_enlisted().unwrap().settle_and_commit(complete(&leased)).await;
        assert_eq!(settled.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!((effects(&path).await, status(&store, &leased).await), (0, Status::Leased));
    }
    let enlisted = handle(&store, &leased, "same").await;
    assert_eq!(
        enlisted.settle_and_commit(complete(&leased)).await.unwrap(),
        Settled::Applied(Status::Completed)
    );
}

#[tokio::test]
async fn an_accept_beside_the_handlers_transaction_says_what_is_wrong() {
    let (_directory, path) = place();
    let options = SqliteOptions::new(&path).busy_timeout(Duration::from_millis(50));
    let store = SqliteStore::open(options).await.unwrap();
    accept(&store, [order()]).await;
    let leased = lease(&store, 1).await.remove(0);
    let context = context(&store, &leased);
    let tx = SqliteTx::from_message_parts(&context).await.unwrap();
    let error = store.append(vec![group([order()])]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    assert!(error.to_string().contains("append_in"), "{error}");
    // Settled while the handler still holds it: refused, and nothing is lost.
    let enlisted = context.take_enlisted().unwrap();
    assert_eq!(enlisted.roll_back().await.unwrap_err().kind(), StoreErrorKind::Invalid);
    drop(tx);
    enlisted.roll_back().await.unwrap();
    accept(&store, [order()]).await;
}

#[test]
fn a_missing_store_is_found_at_build_time() {
    let error = SqliteTx::check(&Extensions::new()).unwrap_err().to_string();
    assert!(error.contains("SqliteStore") && error.contains(".state("), "{error}");
}
