//! Several handles on one file, as several processes have them.

use crate::support::{accept, group, lease, open, order, place, raw};
use mailslot_core::{InboxStore as _, OperatorStore as _, StoreErrorKind};
use mailslot_store_sqlite::{SqliteOptions, SqliteStore};
use std::collections::HashSet;
use std::time::Duration;

#[tokio::test]
async fn an_accept_in_one_process_wakes_another() {
    let (_directory, path) = place();
    let (here, there) = (open(&path).await, open(&path).await);
    for _ in 0..3 {
        let woken = there.work_signal().listen();
        accept(&here, [order()]).await;
        woken.await;
    }
    assert_eq!(lease(&there, 10).await.len(), 3);
}

#[tokio::test]
async fn a_commit_of_the_application_wakes_the_workers() {
    let (_directory, path) = place();
    let store = open(&path).await;
    let mut db = raw(&path).await;
    for _ in 0..3 {
        let mut tx = sqlx::Connection::begin(&mut db).await.unwrap();
        store.append_in(&mut tx, vec![group([order()])]).await.unwrap();
        assert_eq!(lease(&store, 10).await.len(), 0);
        let woken = store.work_signal().listen();
        tx.commit().await.unwrap();
        woken.await;
        assert_eq!(lease(&store, 10).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_leased_twice_by_processes_that_claim_at_once() {
    let (_directory, path) = place();
    let store = open(&path).await;
    accept(&store, (0..200).map(|_| order())).await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        let worker = open(&path).await;
        workers.push(tokio::spawn(async move {
            let mut seqs = Vec::new();
            loop {
                let leased = lease(&worker, 7).await;
                if leased.is_empty() {
                    return seqs;
                }
                seqs.extend(leased.into_iter().map(|leased| leased.envelope.seq));
            }
        }));
    }
    let mut seen = HashSet::new();
    for worker in workers {
        for seq in worker.await.unwrap() {
            assert!(seen.insert(seq), "message {seq} was leased twice");
        }
    }
    assert_eq!(seen.len(), 200);
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_transaction_that_stays_open_makes_others_busy_and_lets_them_go_on_after() {
    let (_directory, path) = place();
    let options = SqliteOptions::new(&path).busy_timeout(Duration::from_millis(50));
    let store = SqliteStore::open(options).await.unwrap();
    let mut db = raw(&path).await;
    let tx = sqlx::Connection::begin_with(&mut db, "BEGIN IMMEDIATE").await.unwrap();
    let error = store.append(vec![group([order()])]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
    assert!(error.is_transient());
    // Looking goes on meanwhile, and an empty claim needs no write lock.
    assert_eq!(lease(&store, 10).await.len(), 0);
    assert_eq!(store.counts().await.unwrap(), []);
    tx.rollback().await.unwrap();
    accept(&store, [order()]).await;
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_the_writer_usable() {
    use std::future::Future as _;
    let (_directory, path) = place();
    let store = open(&path).await;
    accept(&store, [order()]).await;
    for polls in 1..12 {
        let mut append = Box::pin(store.append(vec![group([order()])]));
        for _ in 0..polls {
            let poll = std::future::poll_fn(|context| {
                let _ = append.as_mut().poll(context);
                std::task::Poll::Ready(())
            });
            poll.await;
            tokio::task::yield_now().await;
        }
        drop(append);
        accept(&store, [order()]).await;
    }
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn the_watch_ends_with_the_last_handle() {
    let (_directory, path) = place();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let store = open(&path).await;
    let clone = store.clone();
    drop(store);
    accept(&clone, [order()]).await;
    drop(clone);
    let ended = async {
        while tokio::runtime::Handle::current().metrics().num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
}
