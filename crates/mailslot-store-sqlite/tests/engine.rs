//! The engine's suite on SQLite files, with the application's effects in the same file.

use async_trait::async_trait;
use mailslot_core::{Context, ManualClock, Receipt, Verdict};
use mailslot_engine::{AcceptError, Inbox, InboxBuilder};
use mailslot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx};
use mailslot_testkit::engine::{self, Body, Order, Setup, TapStore, Transactions};
use mailslot_testkit::store::Opened;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use std::path::PathBuf;
use std::sync::Arc;

fn main() {
    engine::run("sqlite", open)
}

async fn open(clock: Arc<ManualClock>) -> Setup {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("inbox.db");
    let options = SqliteOptions::new(path.clone()).clock(clock);
    let store = SqliteStore::open(options).await.expect("a fresh file can be opened");
    let application = Application { store: store.clone(), path };
    let mut db = application.connect().await;
    sqlx::raw_sql("CREATE TABLE effect (text TEXT NOT NULL)")
        .execute(&mut db)
        .await
        .expect("a table can be made");
    Setup::from(Opened::new(store).keep(directory)).transactions(application)
}

/// An application that keeps its own rows beside the inbox.
struct Application {
    store: SqliteStore,
    path: PathBuf,
}

impl Application {
    fn inbox(&self) -> Inbox<SqliteStore> {
        Inbox::builder(self.store.clone()).contract::<Order>().build().expect("the inbox can be built")
    }

    async fn connect(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .connect()
            .await
            .expect("the file can be opened again")
    }
}

async fn write_effect(db: &mut SqliteConnection, text: &str) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effect VALUES (?)").bind(text).execute(db).await.map(|_| ())
}

async fn write_note(order: Order, context: Context, body: Body, mut tx: SqliteTx) -> Verdict {
    match write_effect(&mut tx, &order.note).await {
        Ok(()) => body(order, context).await,
        Err(error) => panic!("the effect cannot be written: {error}"),
    }
}

#[async_trait]
impl Transactions for Application {
    async fn accept_in(&self, order: &Order, effect: &str, commit: bool) -> Result<Receipt, AcceptError> {
        let inbox = self.inbox();
        let mut db = self.connect().await;
        let mut transaction = db.begin().await.expect("a transaction can begin");
        write_effect(&mut transaction, effect).await.expect("an effect can be written");
        let receipt = inbox.accept_in(&mut *transaction, order).await?;
        let ended = if commit { transaction.commit().await } else { transaction.rollback().await };
        ended.expect("the transaction can end");
        Ok(receipt)
    }

    async fn accept_strictly_in(
        &self,
        order: &Order,
        key: &str,
        effect: &str,
    ) -> Result<Receipt, AcceptError> {
        let inbox = self.inbox();
        let mut db = self.connect().await;
        let mut transaction = db.begin().await.expect("a transaction can begin");
        write_effect(&mut transaction, effect).await.expect("an effect can be written");
        // An error drops the transaction, which rolls it back.
        let receipt = inbox.accept_in(&mut *transaction, order).idempotency_key(key).strict().await?;
        transaction.commit().await.expect("the transaction can end");
        Ok(receipt)
    }

    fn handler(&self, builder: InboxBuilder<TapStore>, body: Body) -> InboxBuilder<TapStore> {
        let handler = move |order: Order, context: Context, tx: SqliteTx| {
            write_note(order, context, Arc::clone(&body), tx)
        };
        builder.state(self.store.clone()).handler(handler)
    }

    async fn effects(&self) -> Vec<String> {
        let effects = sqlx::query_scalar("SELECT text FROM effect ORDER BY rowid");
        effects.fetch_all(&mut self.connect().await).await.expect("effects can be read")
    }
}
