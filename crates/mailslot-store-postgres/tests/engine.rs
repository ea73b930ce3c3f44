//! The engine's suite on PostgreSQL, with the application's effects in the same database.

use async_trait::async_trait;
use mailslot_core::{Context, ManualClock, Receipt, Verdict};
use mailslot_engine::{AcceptError, Inbox, InboxBuilder};
use mailslot_store_postgres::{PostgresOptions, PostgresStore, PostgresTx};
use mailslot_testkit::engine::{self, Body, Order, Setup, TapStore, Transactions};
use mailslot_testkit::servers;
use mailslot_testkit::store::Opened;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use std::sync::Arc;

fn main() {
    engine::run("postgres", open)
}

async fn open(clock: Arc<ManualClock>) -> Setup {
    let schema = servers::fresh_schema();
    let options: PostgresOptions = servers::shared().parse().expect("the server's URL is one");
    let options = options.schema(schema.clone()).expect("the name is a plain one").clock(clock);
    let store = PostgresStore::open(options).await.expect("a fresh schema can be made");
    let application = Application { store: store.clone(), table: format!("effect_{schema}") };
    let create = format!(
        "CREATE TABLE {} (id bigint GENERATED ALWAYS AS IDENTITY, text text NOT NULL)",
        application.table
    );
    let mut db = application.connect().await;
    sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut db).await.expect("a table can be made");
    let scratch = servers::Scratch::new(servers::shared(), schema);
    Setup::from(Opened::new(store).keep(scratch)).transactions(application)
}

/// An application that keeps its own rows beside the inbox.
struct Application {
    store: PostgresStore,
    table: String,
}

impl Application {
    fn inbox(&self) -> Inbox<PostgresStore> {
        Inbox::builder(self.store.clone()).contract::<Order>().build().expect("the inbox can be built")
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&servers::shared()).await.expect("the server can be reached")
    }
}

async fn write_effect(db: &mut PgConnection, table: &str, text: &str) -> sqlx::Result<()> {
    let insert = AssertSqlSafe(format!("INSERT INTO {table} (text) VALUES ($1)"));
    sqlx::query(insert).bind(text.to_owned()).execute(db).await.map(|_| ())
}

async fn write_note(
    order: Order,
    context: Context,
    body: Body,
    table: String,
    mut tx: PostgresTx,
) -> Verdict {
    match write_effect(&mut tx, &table, &order.note).await {
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
        write_effect(&mut transaction, &self.table, effect).await.expect("an effect can be written");
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
        write_effect(&mut transaction, &self.table, effect).await.expect("an effect can be written");
        // An error drops the transaction, which rolls it back.
        let receipt = inbox.accept_in(&mut *transaction, order).idempotency_key(key).strict().await?;
        transaction.commit().await.expect("the transaction can end");
        Ok(receipt)
    }

    fn handler(&self, builder: InboxBuilder<TapStore>, body: Body) -> InboxBuilder<TapStore> {
        let table = self.table.clone();
        let handler = move |order: Order, context: Context, tx: PostgresTx| {
            write_note(order, context, Arc::clone(&body), table.clone(), tx)
        };
        builder.state(self.store.clone()).handler(handler)
    }

    async fn effects(&self) -> Vec<String> {
        let select = AssertSqlSafe(format!("SELECT text FROM {} ORDER BY id", self.table));
        let effects = sqlx::query_scalar(select);
        effects.fetch_all(&mut self.connect().await).await.expect("effects can be read")
    }
}
