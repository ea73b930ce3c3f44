//! A server that stands still, and lines to it that are dead without being closed.

use crate::proxy::Proxy;
use crate::rig::{CALL_TIMEOUT, Rig, Working, by_hand, connect, eventually, options, order, timed};
use mailslot_core::{Context, HandlerError, OperatorStore as _, State, Status, StoreErrorKind};
use mailslot_engine::Inbox;
use mailslot_store_postgres::{PostgresStore, PostgresTx};
use mailslot_testkit::engine::Order;
use mailslot_testkit::servers::PostgresServer;
use std::sync::Arc;
use std::time::Duration;

async fn proxy(rig: &Rig) -> Proxy {
    let port = rig.url().rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    Proxy::start(port).await
}

#[tokio::test]
async fn a_server_that_stands_still_is_given_up_in_time_and_found_again() {
    let mut rig = Rig::start().await;
    let mut load = rig.working.load();
    load.until_accepted(20).await;
    rig.server(PostgresServer::pause).await;
    let (_, took) = timed(load.until_failed()).await;
    assert!(took < CALL_TIMEOUT * 8, "{took:?}");
    load.until_failed().await;
    rig.server(PostgresServer::resume).await;
    load.until_accepted(20).await;
    let progress = load.end().await;
    rig.working.assert_nothing_is_lost(progress.accepted).await;
    rig.log.assert_told_of_one_outage();
}

#[tokio::test]
async fn dead_lines_are_replaced_although_nobody_closes_them() {
    let rig = Rig::start().await;
    let proxy = proxy(&rig).await;
    rig.working.stop().await;
    let mut working = Working::start(PostgresStore::open(options(&proxy.url())).await.unwrap());
    let mut load = working.load();
    for _ in 0..3 {
        load.until_accepted(20).await;
        proxy.cut();
        let (_, took) = timed(load.until_failed()).await;
        assert!(took < CALL_TIMEOUT * 8, "{took:?}");
    }
    load.until_accepted(20).await;
    let progress = load.end().await;
    assert!(progress.errors.iter().all(|kind| *kind == StoreErrorKind::Unavailable), "{progress:?}");
    working.assert_nothing_is_lost(progress.accepted).await;
}

#[tokio::test]
async fn a_store_does_not_wait_for_ever_to_be_opened() {
    let rig = Rig::start().await;
    let proxy = proxy(&rig).await;
    proxy.cut_at("BEGIN", "BEGIN");
    let (opened, took) = timed(PostgresStore::open(options(&proxy.url()))).await;
    assert_eq!(opened.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert!(took < CALL_TIMEOUT * 8, "{took:?}");
}

async fn write_effect(
    order: Order,
    context: Context,
    State(proxy): State<Arc<Proxy>>,
    mut tx: PostgresTx,
) -> Result<(), HandlerError> {
    sqlx::query("INSERT INTO effect VALUES ($1)").bind(i64::from(order.number)).execute(&mut *tx).await?;
    if context.attempt().number == 1 {
        proxy.cut_at("last words", "COMMIT");
        sqlx::raw_sql("SELECT 'last words'").execute(&mut *tx).await?;
    }
    Ok(())
}

/// The server then holds the lease's lock for a transaction whose end never comes.
#[tokio::test]
async fn a_handlers_transaction_whose_commit_never_arrives_is_ended_and_done_again() {
    let rig = Rig::start().await;
    let url = rig.url();
    by_hand(&url, "CREATE TABLE effect (number bigint NOT NULL)").await;
    let proxy = Arc::new(proxy(&rig).await);
    rig.working.stop().await;
    let store = PostgresStore::open(options(&proxy.url())).await.unwrap();
    let inbox = Inbox::builder(store.clone())
        .state(proxy.clone())
        .handler(write_effect)
        .retry(mailslot_core::Retry::fixed(Duration::from_millis(10)))
        .build()
        .unwrap();
    let working = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.run(std::future::pending()).await }
    });
    let receipt = inbox.accept(&order(1)).await.unwrap();
    proxy.until_cut().await;
    eventually("the order is completed", async || {
        let details = store.get(receipt.id).await.unwrap();
        details[0].record.status == Status::Completed
    })
    .await;
    let mut db = connect(&url).await;
    let effects: i64 = sqlx::query_scalar("SELECT count(*) FROM effect").fetch_one(&mut db).await.unwrap();
    assert_eq!(effects, 1);
    assert_eq!(store.get(receipt.id).await.unwrap()[0].record.attempt.number, 2);
    assert_eq!(store.check().await.unwrap(), []);
    working.abort();
}
