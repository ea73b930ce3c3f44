//! An application with an inbox and a table of its own in one database.

use mailslot_core::store::{Filter, MessageRecord};
use mailslot_core::{Message as _, NewMessage, OperatorStore as _};
use mailslot_engine::Inbox;
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::engine::Order;
use mailslot_testkit::message::{MessageBuilder, message};
use mailslot_testkit::servers;
use mailslot_testkit::store::every_record;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// Where the application finds its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the server.
    Direct,
    /// Behind a pooler in transaction mode.
    BehindPooler,
}

impl Place {
    fn url(self) -> String {
        match self {
            Self::Direct => servers::shared(),
            Self::BehindPooler => servers::pgbouncer(),
        }
    }

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Direct => "",
            Self::BehindPooler => " behind pgbouncer",
        }
    }
}

/// The application.
pub(crate) struct Bench {
    pub(crate) store: PostgresStore,
    pub(crate) inbox: Inbox<PostgresStore>,
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Bench {
    pub(crate) async fn open(place: Place) -> Self {
        let (url, schema) = (place.url(), servers::fresh_schema());
        let options: PostgresOptions = url.parse().unwrap();
        let store = PostgresStore::open(options.schema(schema.clone()).unwrap()).await.unwrap();
        let inbox = Inbox::builder(store.clone()).contract::<Order>().build().unwrap();
        let bench = Self { store, inbox, url, schema };
        let table = "CREATE TABLE effect_OF (id bigint GENERATED ALWAYS AS IDENTITY, text text NOT NULL)";
        bench.run(&table.replace("OF", &bench.schema)).await;
        bench
    }

    /// A connection of the application's.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Runs a statement of the application's outside of all transactions.
    pub(crate) async fn run(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement).execute(&mut directly().await).await.unwrap();
    }

    /// The statement that writes an effect of the application's.
    pub(crate) fn writes(&self, text: &str) -> String {
        format!("INSERT INTO effect_{} (text) VALUES ('{text}')", self.schema)
    }

    /// The effects that are committed, in order.
    pub(crate) async fn effects(&self) -> Vec<String> {
        let select = AssertSqlSafe(format!("SELECT text FROM effect_{} ORDER BY id", self.schema));
        sqlx::query_scalar(select).fetch_all(&mut directly().await).await.unwrap()
    }

    /// The messages that are committed, in order of acceptance.
    pub(crate) async fn records(&self) -> Vec<MessageRecord> {
        every_record(&self.store, &Filter::default()).await.unwrap()
    }

    /// Nothing that must hold is broken.
    pub(crate) async fn is_sound(&self) {
        assert_eq!(self.store.check().await.unwrap(), []);
    }
}

/// A connection of someone who looks, past the pooler.
async fn directly() -> PgConnection {
    PgConnection::connect(&servers::shared()).await.unwrap()
}

/// An order by number.
pub(crate) fn order(number: u32) -> Order {
    Order { number, note: String::new() }
}

/// The same as the store sees it.
pub(crate) fn stored(number: u32) -> MessageBuilder {
    let encoded = NewMessage::encode(&order(number), mailslot_core::Metadata::default()).unwrap();
    message(Order::NAME).payload(encoded.payload.bytes().to_vec())
}
