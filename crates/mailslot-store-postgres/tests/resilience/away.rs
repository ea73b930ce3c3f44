//! A server that is restarted or killed, and connections that it ends.

use crate::rig::{Rig, accept, by_hand, options, timed};
use mailslot_core::StoreErrorKind;
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::servers::{PostgresServer, ServerError};
use std::time::Duration;

/// Ends every connection but the one that asks.
const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                         WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";

async fn survives(stop: fn(&mut PostgresServer) -> Result<(), ServerError>) {
    let mut rig = Rig::start().await;
    let mut load = rig.working.load();
    load.until_accepted(20).await;
    rig.server(stop).await;
    load.until_failed().await;
    rig.server(PostgresServer::restart).await;
    load.until_accepted(20).await;
    let progress = load.end().await;
    assert!(progress.errors.iter().all(|kind| *kind == StoreErrorKind::Unavailable), "{progress:?}");
    rig.working.assert_nothing_is_lost(progress.accepted).await;
    rig.log.assert_told_of_one_outage();
}

#[tokio::test]
async fn a_stop_and_a_start_lose_nothing() {
    survives(PostgresServer::stop_fast).await;
}

#[tokio::test]
async fn a_killed_server_loses_nothing() {
    survives(PostgresServer::kill).await;
}

#[tokio::test]
async fn connections_that_the_server_ends_are_renewed() {
    let mut rig = Rig::start().await;
    let mut load = rig.working.load();
    for _ in 0..10 {
        load.until_accepted(5).await;
        by_hand(&rig.url(), TERMINATE).await;
    }
    load.until_accepted(5).await;
    let progress = load.end().await;
    rig.working.assert_nothing_is_lost(progress.accepted).await;
}

#[tokio::test]
async fn a_restart_that_nobody_sees_fails_no_call() {
    let mut rig = Rig::start().await;
    let store = PostgresStore::open(options(&rig.url())).await.unwrap();
    let inbox =
        mailslot_engine::Inbox::builder(store).contract::<mailslot_testkit::engine::Order>().build().unwrap();
    accept(&inbox, 0).await.unwrap();
    rig.server(PostgresServer::restart).await;
    // A restart may take less time than a connection is trusted for.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    accept(&inbox, 1).await.unwrap();
    rig.working.assert_nothing_is_lost(2).await;
}

#[tokio::test]
async fn a_store_outlives_the_worker_that_used_it() {
    let rig = Rig::start().await;
    let store = rig.working.inbox.store().clone();
    let inbox = rig.working.inbox.clone();
    let mut load = rig.working.load();
    load.until_accepted(40).await;
    let accepted = load.end().await.accepted;
    // Heartbeats have a runtime of their own, which ends here, and took connections of the store on it.
    rig.working.stop().await;
    for number in accepted..accepted + 20 {
        accept(&inbox, number).await.unwrap();
    }
    let mut next = crate::rig::Working::start(store);
    next.until_handled(accepted + 19).await;
    next.stop().await;
}

#[tokio::test]
async fn a_store_whose_server_is_gone_says_so_at_once_and_without_a_password() {
    let mut rig = Rig::start().await;
    let url = rig.url().replace("postgres@", "postgres:hunter2@");
    rig.server(PostgresServer::kill).await;
    let (opened, took) = timed(PostgresStore::open(options(&url))).await;
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(took < crate::rig::PATIENCE, "{took:?}");
    let text = format!("{error}: {error:?}");
    assert!(text.contains("refused") && !text.contains("hunter2"), "{text}");
    rig.server(PostgresServer::restart).await;
}
