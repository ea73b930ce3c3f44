//! A handler whose writes commit together with its completion: however often it runs, its effect is there once.
//!
//! `cargo run -p mailslot --example transactional_handler`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mailslot::sqlite::{SqliteStore, SqliteTx};
use mailslot::{Attempt, HandlerError, Inbox, Message, Retry, State};
use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, SqliteConnection};
use std::sync::Arc;
use std::time::Duration;

type Say = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "bank.deposit", version = 1)]
struct Deposit {
    account: i64,
    cents: i64,
}

/// `SqliteTx` is the transaction in which the message is settled. It commits when the handler succeeds and is rolled
/// back when it fails, when it panics, and when the worker has lost the message to another one meanwhile.
async fn deposit(
    deposit: Deposit,
    attempt: Attempt,
    State(say): State<Say>,
    mut tx: SqliteTx,
) -> Result<(), HandlerError> {
    sqlx::query("UPDATE account SET cents = cents + ? WHERE id = ?")
        .bind(deposit.cents)
        .bind(deposit.account)
        .execute(&mut *tx)
        .await?;
    if attempt.number < 3 {
        say(format!("attempt {}: the balance is written, then the handler fails", attempt.number));
        return Err("something fails after the write".into());
    }
    say(format!("attempt {}: the balance is written, and the handler succeeds", attempt.number));
    Ok(())
}

pub(crate) async fn run(say: Say) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bank.db");
    let store = SqliteStore::connect(&file.to_string_lossy()).await?;

    // The application's own table, in the same file: only there can one transaction hold both.
    let mut db = SqliteConnection::connect(&file.to_string_lossy()).await?;
    sqlx::query("CREATE TABLE account (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL)")
        .execute(&mut db)
        .await?;
    sqlx::query("INSERT INTO account VALUES (7, 0)").execute(&mut db).await?;

    let inbox = Inbox::builder(store.clone())
        .handler(deposit)
        // `SqliteTx` takes its transaction from here.
        .state(store)
        .state(say.clone())
        .retry(Retry::fixed(Duration::from_millis(10)).max_attempts(5))
        .build()?;
    inbox.accept(&Deposit { account: 7, cents: 1_250 }).idempotency_key("deposit:1").await?;

    let mut stats = inbox.watch();
    let handled = async { drop(stats.wait_for(|stats| stats.completed == 1).await) };
    inbox.run(handled).await?;

    let cents: i64 = sqlx::query_scalar("SELECT cents FROM account WHERE id = 7").fetch_one(&mut db).await?;
    say(format!("the handler ran {} times, the account has {cents} cents", inbox.stats().started));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Arc::new(|line| println!("{line}"))).await
}
