//! Too few connections: in the store's own pool, and in the server.

use crate::rig::{CALL_TIMEOUT, Rig, accept, connect, eventually, kind_of, options, server, timed};
use mailslot_core::{InboxStore as _, StoreError, StoreErrorKind};
use mailslot_engine::Inbox;
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::engine::Order;
use mailslot_testkit::servers::PostgresServer;
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

const CALLERS: usize = 20;

async fn call_at_once(store: &PostgresStore) -> Vec<Result<(), StoreError>> {
    let mut calls = JoinSet::new();
    for _ in 0..CALLERS {
        let store = store.clone();
        calls.spawn(async move { store.now().await.map(|_| ()) });
    }
    calls.join_all().await
}

#[tokio::test]
async fn callers_of_one_connection_wait_for_it_and_are_told_when_it_is_in_use_for_too_long() {
    let mut rig = Rig::start().await;
    let store = PostgresStore::open(options(&rig.url()).connections(1)).await.unwrap();
    assert!(call_at_once(&store).await.iter().all(Result::is_ok), "they take turns");

    rig.server(PostgresServer::pause).await;
    let (answers, took) = timed(call_at_once(&store)).await;
    rig.server(PostgresServer::resume).await;
    assert!(took >= CALL_TIMEOUT && took < CALL_TIMEOUT * 8, "{took:?}");
    let errors: Vec<_> = answers.into_iter().map(Result::unwrap_err).collect();
    let busy: Vec<_> = errors.iter().filter(|error| error.kind() == StoreErrorKind::Busy).collect();
    assert_eq!(busy.len(), CALLERS - 1, "{errors:?}");
    assert!(busy[0].to_string().contains("all 1 connections were in use"), "{}", busy[0]);
    assert!(errors.iter().any(|error| error.kind() == StoreErrorKind::Unavailable), "{errors:?}");
    eventually("the connection is renewed", async || call_at_once(&store).await.iter().all(Result::is_ok))
        .await;
}

/// Takes every connection that the server has left for a plain role.
async fn take_all(url: &str) -> Vec<PgConnection> {
    let mut taken = Vec::new();
    loop {
        match PgConnection::connect(url).await {
            Ok(connection) => taken.push(connection),
            Err(error) => {
                let code =
                    error.as_database_error().and_then(|error| error.code().map(|code| code.to_string()));
                assert_eq!(code.as_deref(), Some("53300"), "{error}");
                return taken;
            }
        }
    }
}

#[tokio::test]
async fn a_server_without_a_connection_left_is_waited_for() {
    let server = server(&["max_connections = 12"]).await;
    let mut admin = connect(&server.url()).await;
    sqlx::raw_sql("CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app")
        .execute(&mut admin)
        .await
        .unwrap();
    // Not as the superuser, for whom the server keeps some.
    let url = server.url().replace("postgres@", "app@");
    let store = PostgresStore::open(options(&url)).await.unwrap();
    let inbox = Inbox::builder(store).contract::<Order>().build().unwrap();
    let taken = take_all(&url).await;
    let error = accept(&inbox, 0).await.unwrap_err();
    assert_eq!(kind_of(&error), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("no connection left; raise max_connections"), "{error}");
    drop(taken);
    eventually("an accept finds a connection", async || accept(&inbox, 0).await.is_ok()).await;
}
