//! Accepting in a transaction of SeaORM: the order and the message about it are both there, or neither is.
//!
//! `DATABASE_URL=postgres://user@host/database cargo run -p mailslot --features sea-orm --example accept_in_sea_orm`. It makes the
//! schema `mailslot_example`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::Context as _;
use mailslot::postgres::{PostgresOptions, PostgresStore};
use mailslot::store::Filter;
use mailslot::{Inbox, Message, State};
use sea_orm::{
    ConnectOptions, ConnectionTrait as _, Database, DatabaseTransaction, DbBackend, Statement,
    TransactionTrait as _,
};
use serde::{Deserialize, Serialize};
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
async fn place(inbox: &Inbox<PostgresStore>, mut tx: &DatabaseTransaction, order: i64) -> anyhow::Result<()> {
    let insert = "INSERT INTO shop_order VALUES ($1)";
    tx.execute_raw(Statement::from_sql_and_values(DbBackend::Postgres, insert, [order.into()])).await?;
    // A reference is enough, as the closures of `transaction` are given one.
    inbox.accept_in(&mut tx, &OrderPlaced { order }).idempotency_key(format!("order:{order}")).await?;
    Ok(())
}

pub(crate) async fn run(url: &str, schema: &str, say: Say) -> anyhow::Result<()> {
    let options: PostgresOptions = url.parse()?;
    let store = PostgresStore::open(options.schema(schema)?).await?;
    let inbox = Inbox::builder(store).handler(confirm).state(say.clone()).build()?;
    // What an earlier run left: its orders would be known.
    inbox.operator().purge(&Filter::default(), true).await?;

    let db = Database::connect(ConnectOptions::new(url).max_connections(1).to_owned()).await?;
    // Stands for the application's own table.
    db.execute_unprepared("CREATE TEMPORARY TABLE shop_order (id bigint)").await?;

    let tx = db.begin().await?;
    place(&inbox, &tx, 1).await?;
    tx.rollback().await?;
    say(format!("order 1 is rolled back: {} messages", messages(&inbox).await?));

    let tx = db.begin().await?;
    place(&inbox, &tx, 2).await?;
    tx.commit().await?;
    say(format!("order 2 is committed: {} message", messages(&inbox).await?));
    db.close().await?;

    // Workers of every process notice the commit by themselves.
    let mut stats = inbox.watch();
    let handled = async { drop(stats.wait_for(|stats| stats.completed == 1).await) };
    inbox.run(handled).await?;
    Ok(())
}

async fn messages(inbox: &Inbox<PostgresStore>) -> anyhow::Result<u64> {
    Ok(inbox.operator().counts().await?.iter().map(|count| count.messages).sum())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("DATABASE_URL").context("set DATABASE_URL to a PostgreSQL database")?;
    run(&url, "mailslot_example", Arc::new(|line| println!("{line}"))).await
}
