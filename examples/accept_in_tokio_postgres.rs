//! Accepting in a transaction of tokio-postgres: the order and the message about it are both there, or neither is.
//!
//! `DATABASE_URL=postgres://user@host/database cargo run -p mailslot --features tokio-postgres --example accept_in_tokio_postgres`. It makes the
//! schema `mailslot_example`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::Context as _;
use mailslot::postgres::{PostgresOptions, PostgresStore};
use mailslot::store::Filter;
use mailslot::{Inbox, Message, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio_postgres::{NoTls, Transaction};

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
async fn place(inbox: &Inbox<PostgresStore>, tx: &mut Transaction<'_>, order: i64) -> anyhow::Result<()> {
    tx.execute("INSERT INTO shop_order VALUES ($1)", &[&order]).await?;
    inbox.accept_in(tx, &OrderPlaced { order }).idempotency_key(format!("order:{order}")).await?;
    Ok(())
}

pub(crate) async fn run(url: &str, schema: &str, say: Say) -> anyhow::Result<()> {
    let options: PostgresOptions = url.parse()?;
    let store = PostgresStore::open(options.schema(schema)?).await?;
    let inbox = Inbox::builder(store).handler(confirm).state(say.clone()).build()?;
    // What an earlier run left: its orders would be known.
    inbox.operator().purge(&Filter::default(), true).await?;

    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    // Stands for the application's own table.
    client.batch_execute("CREATE TEMPORARY TABLE shop_order (id bigint)").await?;

    let mut tx = client.transaction().await?;
    place(&inbox, &mut tx, 1).await?;
    tx.rollback().await?;
    say(format!("order 1 is rolled back: {} messages", messages(&inbox).await?));

    let mut tx = client.transaction().await?;
    place(&inbox, &mut tx, 2).await?;
    tx.commit().await?;
    say(format!("order 2 is committed: {} message", messages(&inbox).await?));
    drop(client);
    connection.await??;

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
