//! Accepting in the application's own transaction: the order and the message about it are both there, or neither is.
//!
//! `cargo run -p mailslot --example accept_in_transaction`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mailslot::sqlite::SqliteStore;
use mailslot::{Inbox, Message, State};
use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, SqliteConnection};
use std::sync::Arc;

type Say = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order-placed", version = 1)]
struct OrderPlaced {
    order: i64,
}

async fn confirm(placed: OrderPlaced, State(say): State<Say>) {
    say(format!("order {} is confirmed", placed.order));
}

/// What the application does in one transaction. The caller decides whether it commits.
async fn place(inbox: &Inbox<SqliteStore>, db: &mut SqliteConnection, order: i64) -> anyhow::Result<()> {
    sqlx::query("INSERT INTO shop_order VALUES (?)").bind(order).execute(&mut *db).await?;
    inbox.accept_in(db, &OrderPlaced { order }).idempotency_key(format!("order:{order}")).await?;
    Ok(())
}

pub(crate) async fn run(say: Say) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    let store = SqliteStore::connect(&file.to_string_lossy()).await?;
    let mut db = SqliteConnection::connect(&file.to_string_lossy()).await?;
    sqlx::query("CREATE TABLE shop_order (id INTEGER PRIMARY KEY)").execute(&mut db).await?;
    let inbox = Inbox::builder(store).handler(confirm).state(say.clone()).build()?;

    // A transaction that only writes later would better begin with `begin_with("BEGIN IMMEDIATE")`.
    let mut tx = db.begin().await?;
    place(&inbox, &mut tx, 1).await?;
    tx.rollback().await?;
    say(format!("order 1 is rolled back: {} messages", messages(&inbox).await?));

    let mut tx = db.begin().await?;
    place(&inbox, &mut tx, 2).await?;
    tx.commit().await?;
    // Workers notice the commit by themselves; a worker of this process at once when it is told.
    inbox.wake();
    say(format!("order 2 is committed: {} message", messages(&inbox).await?));

    let mut stats = inbox.watch();
    let handled = async { drop(stats.wait_for(|stats| stats.completed == 1).await) };
    inbox.run(handled).await?;
    Ok(())
}

async fn messages(inbox: &Inbox<SqliteStore>) -> anyhow::Result<u64> {
    Ok(inbox.operator().counts().await?.iter().map(|count| count.messages).sum())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Arc::new(|line| println!("{line}"))).await
}
