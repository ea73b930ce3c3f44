//! Accepting in a transaction of Diesel, by diesel-async: the order and the message about it are both there, or neither is.
//!
//! `DATABASE_URL=postgres://user@host/database cargo run -p mailslot --features diesel-async --example accept_in_diesel`. It makes the
//! schema `mailslot_example`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::Context as _;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use mailslot::postgres::{PostgresOptions, PostgresStore};
use mailslot::store::Filter;
use mailslot::{Inbox, Message, State};
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

/// What the application does in one transaction. An error of its closure rolls it back.
async fn place(inbox: &Inbox<PostgresStore>, db: &mut AsyncPgConnection, order: i64) -> anyhow::Result<()> {
    diesel::sql_query("INSERT INTO shop_order VALUES ($1)")
        .bind::<BigInt, _>(order)
        .execute(&mut *db)
        .await?;
    inbox.accept_in(db, &OrderPlaced { order }).idempotency_key(format!("order:{order}")).await?;
    Ok(())
}

pub(crate) async fn run(url: &str, schema: &str, say: Say) -> anyhow::Result<()> {
    let options: PostgresOptions = url.parse()?;
    let store = PostgresStore::open(options.schema(schema)?).await?;
    let inbox = Inbox::builder(store).handler(confirm).state(say.clone()).build()?;
    // What an earlier run left: its orders would be known.
    inbox.operator().purge(&Filter::default(), true).await?;

    let mut db = AsyncPgConnection::establish(url).await?;
    // Stands for the application's own table.
    db.batch_execute("CREATE TEMPORARY TABLE shop_order (id bigint)").await?;

    let fails = db.transaction(async |db| {
        place(&inbox, db, 1).await?;
        anyhow::bail!("the customer has no money")
    });
    let failed: anyhow::Result<()> = fails.await;
    let why = failed.err().map(|error| error.to_string()).unwrap_or_default();
    say(format!("order 1 is rolled back, because {why}: {} messages", messages(&inbox).await?));

    db.transaction(async |db| place(&inbox, db, 2).await).await?;
    say(format!("order 2 is committed: {} message", messages(&inbox).await?));

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
