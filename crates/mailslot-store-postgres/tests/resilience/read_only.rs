//! A server that takes no writes: a standby, or one that was told so.

use crate::log::Log;
use crate::rig::{
    Rig, Working, accept, answers, by_hand, connect, eventually, kind_of, options, order, server,
};
use mailslot_core::{OperatorStore as _, State, Status, StoreErrorKind};
use mailslot_engine::{Inbox, WorkerConfig};
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::engine::Order;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

async fn count(store: &PostgresStore) -> u64 {
    store.counts().await.unwrap().iter().map(|count| count.messages).sum()
}

#[tokio::test]
async fn a_standby_is_for_looking_until_it_is_promoted() {
    let (log, _listening) = Log::begin();
    let primary = server(&[]).await;
    let first = PostgresStore::open(options(&primary.url())).await.unwrap();
    let inbox = Inbox::builder(first.clone()).contract::<Order>().build().unwrap();
    accept(&inbox, 0).await.unwrap();
    let (primary, standby) = tokio::task::spawn_blocking(move || {
        let standby = primary.start_standby().unwrap();
        (primary, standby)
    })
    .await
    .unwrap();
    accept(&inbox, 1).await.unwrap();

    let store = PostgresStore::open(options(&standby.url())).await.unwrap();
    eventually("the standby has both", async || count(&store).await == 2).await;
    assert_eq!(store.check().await.unwrap(), []);
    let mut working = Working::start(store.clone());
    let error = accept(&working.inbox, 2).await.unwrap_err();
    assert_eq!(kind_of(&error), StoreErrorKind::NotWritable);
    assert!(error.to_string().contains("a standby"), "{error}");
    eventually("the worker says what it waits for", async || {
        log.count(&["WARN", "the store is away", "claims and verdicts", "a standby"]) == 1
    })
    .await;

    drop((first, inbox));
    tokio::task::spawn_blocking(move || drop(primary)).await.unwrap();
    by_hand(&standby.url(), "SELECT pg_promote()").await;
    accept(&working.inbox, 2).await.unwrap();
    working.assert_nothing_is_lost(3).await;
    log.assert_told_of_one_outage();
}

/// A handler that waits to be let through.
async fn wait(_order: Order, State(gate): State<Arc<Semaphore>>) {
    gate.acquire().await.unwrap().forget();
}

async fn set(rig: &Rig, sql: &'static str, store: &PostgresStore) {
    let mut db = connect(&rig.url()).await;
    sqlx::raw_sql(sql).execute(&mut db).await.unwrap();
    sqlx::raw_sql("SELECT pg_reload_conf()").execute(&mut db).await.unwrap();
    let wanted = if sql.contains("RESET") { "off" } else { "on" };
    eventually("the server has heard", async || {
        let show = "SHOW default_transaction_read_only";
        let now: String = sqlx::query_scalar(show).fetch_one(&mut db).await.unwrap();
        now == wanted && answers(store).await
    })
    .await;
}

#[tokio::test]
async fn verdicts_are_kept_while_a_server_refuses_writes() {
    let rig = Rig::start().await;
    let store = PostgresStore::open(options(&rig.url())).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let inbox = Inbox::builder(store.clone())
        .state(gate.clone())
        .endpoint("gated")
        .handler(wait)
        .worker(WorkerConfig { concurrency: 5, poll: Duration::from_millis(50), ..WorkerConfig::default() })
        .build()
        .unwrap();
    let running = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.run(std::future::pending()).await }
    });
    for number in 0..5 {
        inbox.accept(&order(number)).await.unwrap();
    }
    let mut stats = inbox.watch();
    crate::rig::soon("all run", stats.wait_for(|stats| stats.started == 5)).await.unwrap();

    set(&rig, "ALTER SYSTEM SET default_transaction_read_only = on", &store).await;
    gate.add_permits(5);
    eventually("the worker says what it waits for", async || {
        rig.log.count(&["WARN", "the store is away", "read-only"]) > 0
    })
    .await;
    assert_eq!(kind_of(&accept(&inbox, 9).await.unwrap_err()), StoreErrorKind::NotWritable);

    set(&rig, "ALTER SYSTEM RESET default_transaction_read_only", &store).await;
    crate::rig::soon("all are completed", stats.wait_for(|stats| stats.completed == 5)).await.unwrap();
    assert_eq!(stats.borrow().started, 5, "none was handled twice");
    let counts = store.counts().await.unwrap();
    assert!(counts.iter().all(|count| count.status == Status::Completed), "{counts:?}");
    assert_eq!(store.check().await.unwrap(), []);
    running.abort();
}
