//! A schema of a case's own, and short words for what the cases do.

use mailslot_core::store::{AppendGroup, Exchange, LaneRequest, LeaseRequest, Leased, Settled};
use mailslot_core::{Disposition, EndpointName, InboxStore as _, ManualClock, MessageId, Owner, Settlement};
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::message::{MessageBuilder, message};
use mailslot_testkit::servers::{self, Scratch};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Place {
    url: String,
    schema: String,
    pub(crate) clock: Arc<ManualClock>,
    _scratch: Scratch,
}

impl Place {
    pub(crate) fn new() -> Self {
        let (url, schema) = (servers::shared(), servers::fresh_schema());
        let scratch = Scratch::new(url.clone(), schema.clone());
        Self { url, schema, clock: Arc::new(ManualClock::default()), _scratch: scratch }
    }

    fn options(&self) -> PostgresOptions {
        let options: PostgresOptions = self.url.parse().expect("it can be had");
        options.schema(self.schema.clone()).expect("it can be had")
    }

    /// A store that reads the clock of the case.
    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::open(self.options().clock(self.clock.clone())).await.expect("it can be had")
    }

    /// A store that reads the clock of the server.
    pub(crate) async fn open_with_servers_clock(&self) -> PostgresStore {
        PostgresStore::open(self.options()).await.expect("it can be had")
    }

    /// A connection of someone with `psql`.
    pub(crate) async fn raw(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("it can be had")
    }

    /// Statements that name the schema `mailslot`, with the schema of the case.
    pub(crate) fn sql(&self, statements: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(statements.replace("mailslot.", &format!("{}.", self.schema)))
    }

    pub(crate) async fn by_hand(&self, statements: &str) {
        let mut db = self.raw().await;
        db.execute(sqlx::raw_sql(self.sql(statements))).await.expect("it can be had");
        db.close().await.expect("it can be had");
    }

    pub(crate) async fn number(&self, statement: &str) -> i64 {
        let mut db = self.raw().await;
        let number = sqlx::query_scalar(self.sql(statement)).fetch_one(&mut db).await.expect("it can be had");
        db.close().await.expect("it can be had");
        number
    }
}

pub(crate) fn order() -> MessageBuilder {
    message("order")
}

/// Accepts messages and returns their ids.
pub(crate) async fn accept(
    store: &PostgresStore,
    messages: impl IntoIterator<Item = MessageBuilder>,
) -> Vec<MessageId> {
    let group = AppendGroup { messages: messages.into_iter().map(MessageBuilder::build).collect() };
    let answers = store.append(vec![group]).await.expect("it can be had");
    answers[0].iter().map(|answer| answer.receipt().expect("it can be had").id).collect()
}

pub(crate) fn claim(limit: usize) -> LeaseRequest {
    let contract = "order".parse().expect("it can be had");
    LeaseRequest {
        owner: Owner::new("test").expect("it can be had"),
        lanes: vec![LaneRequest { endpoint: EndpointName::default(), contract, attempts_max: 5 }],
        limit,
        duration: Duration::from_secs(60),
        tenant: None,
        due_until: None,
    }
}

pub(crate) async fn lease(store: &PostgresStore, limit: usize) -> Vec<Leased> {
    let exchange = Exchange { settlements: Vec::new(), lease: Some(claim(limit)) };
    store.exchange(exchange).await.expect("it can be had").leased
}

pub(crate) async fn settle(store: &PostgresStore, leased: &Leased, disposition: Disposition) {
    let settled = store
        .exchange(Exchange { settlements: vec![settlement(leased, disposition)], lease: None })
        .await
        .expect("it can be had")
        .settled;
    assert!(matches!(settled[..], [Settled::Applied(_)]), "{settled:?}");
}

pub(crate) fn settlement(leased: &Leased, disposition: Disposition) -> Settlement {
    Settlement {
        lease: leased.lease,
        seq: leased.envelope.seq,
        attempt: leased.attempt,
        disposition,
        error: None,
    }
}
