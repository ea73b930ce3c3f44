//! A schema of a case's own.

use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{
    ContentType, Contract, InboxStore as _, Metadata, NewMessage, Payload, StoreError, StoreErrorKind,
};
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::servers;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { url: servers::shared(), schema: servers::fresh_schema() }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        let options: PostgresOptions = self.url.parse().expect("the server's URL is one");
        options.schema(self.schema.clone()).expect("the name is a plain one")
    }

    pub(crate) async fn open(&self) -> Result<PostgresStore, StoreError> {
        PostgresStore::open(self.options()).await
    }

    /// Runs statements that name the schema `mailslot`, as a superuser.
    pub(crate) async fn run(&self, statements: &str) {
        let mut db = PgConnection::connect(&self.url).await.expect("the server can be reached");
        let statements = statements.replace("mailslot.", &format!("{}.", self.schema));
        db.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.expect("the statements are right");
    }
}

pub(crate) fn message() -> NewMessage {
    let contract = Contract::new("test.schema", 1).expect("the name is right");
    let payload = Payload::new("{}", ContentType::default()).expect("it is small");
    NewMessage::new(contract, payload, Metadata::default())
}

pub(crate) async fn accept(store: &PostgresStore, message: NewMessage) -> Result<Appended, StoreError> {
    let mut answers = store.append(vec![AppendGroup::from(message)]).await?;
    Ok(answers.pop().and_then(|mut group| group.pop()).expect("there is an answer for each message"))
}

#[track_caller]
pub(crate) fn refused(opened: Result<PostgresStore, StoreError>, kind: StoreErrorKind) -> String {
    let error = opened.expect_err("it must not be opened");
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}
