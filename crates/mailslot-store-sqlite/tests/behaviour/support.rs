//! What the tests of this store share.

use mailslot_core::store::{AppendGroup, Exchange, LaneRequest, LeaseRequest, Leased};
use mailslot_core::{Disposition, EndpointName, InboxStore as _, MessageId, Owner, Settlement};
use mailslot_store_sqlite::SqliteStore;
use mailslot_testkit::message::{MessageBuilder, message};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A directory with a place for a file in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("inbox.db");
    (directory, path)
}

pub(crate) async fn open(path: &Path) -> SqliteStore {
    SqliteStore::connect(path.to_str().unwrap()).await.unwrap()
}

/// A connection of an application, or of someone with a SQLite shell.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

/// Runs statements by hand.
pub(crate) async fn by_hand(path: &Path, sql: &'static str) {
    let mut db = raw(path).await;
    sqlx::raw_sql(sql).execute(&mut db).await.unwrap();
    db.close().await.unwrap();
}

pub(crate) fn order() -> MessageBuilder {
    message("order")
}

pub(crate) fn group(messages: impl IntoIterator<Item = MessageBuilder>) -> AppendGroup {
    AppendGroup { messages: messages.into_iter().map(MessageBuilder::build).collect() }
}

/// Accepts messages and returns their ids.
pub(crate) async fn accept(
    store: &SqliteStore,
    messages: impl IntoIterator<Item = MessageBuilder>,
) -> Vec<MessageId> {
    let answers = store.append(vec![group(messages)]).await.unwrap();
    answers[0].iter().map(|answer| answer.receipt().unwrap().id).collect()
}

pub(crate) fn claim(limit: usize) -> LeaseRequest {
    let contract = "order".parse().unwrap();
    LeaseRequest {
        owner: Owner::new("test").unwrap(),
        lanes: vec![LaneRequest { endpoint: EndpointName::default(), contract, attempts_max: 5 }],
        limit,
        duration: Duration::from_secs(60),
        tenant: None,
        due_until: None,
    }
}

pub(crate) async fn lease(store: &SqliteStore, limit: usize) -> Vec<Leased> {
    let exchange = Exchange { settlements: Vec::new(), lease: Some(claim(limit)) };
    store.exchange(exchange).await.unwrap().leased
}

pub(crate) fn complete(leased: &Leased) -> Settlement {
    Settlement {
        lease: leased.lease,
        seq: leased.envelope.seq,
        attempt: leased.attempt,
        disposition: Disposition::Complete,
        error: None,
    }
}
