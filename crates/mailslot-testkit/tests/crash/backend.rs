//! The stores that the crash test runs on: where they are, how they are opened, and what an application does in their
//! transactions.

use super::kill::KillStore;
use super::worker::Effects;
use super::workload::{FollowUp, InTransaction, Step};
use mailslot_core::store::AppendGroup;
use mailslot_core::{Context, HandlerError, Metadata, NewMessage, Receipt, State, StoreError};
use mailslot_engine::{Accept, AcceptError, Inbox, InboxBuilder, Store};
use mailslot_store_postgres::{PostgresOptions, PostgresStore, PostgresTx};
use mailslot_store_sqlite::{SqliteStore, SqliteTx};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A fresh place for a round.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Sqlite { dir: PathBuf },
    Postgres { dir: PathBuf, url: String, schema: String },
}

impl Place {
    /// Where the journals are.
    pub(crate) fn dir(&self) -> &Path {
        match self {
            Self::Sqlite { dir } | Self::Postgres { dir, .. } => dir,
        }
    }
}

pub(crate) type CrashInbox<B> = Inbox<KillStore<<B as Backend>::Store>>;
pub(crate) type CrashBuilder<B> = InboxBuilder<KillStore<<B as Backend>::Store>>;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A store, and an application's rows beside it in the same database.
pub(crate) trait Backend: Clone + Send + Sync + 'static {
    type Store: Store + Clone;

    fn dir(&self) -> &Path;

    fn open(&self) -> impl Future<Output = Result<Self::Store, StoreError>> + Send;

    /// Makes the application's tables. No keys on them: what commits twice must show as two rows.
    fn make_tables(&self) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Adds the handler that works in a transaction.
    fn handler_in_transaction(&self, builder: CrashBuilder<Self>, store: Self::Store) -> CrashBuilder<Self>;

    /// Accepts in a transaction of the caller's, with a row.
    fn accept_with_row(
        &self,
        inbox: &CrashInbox<Self>,
        effects: &Effects,
        step: Step,
        key: Option<String>,
        session: Option<String>,
    ) -> impl Future<Output = Result<Receipt, AcceptError>> + Send;

    /// The rows that callers wrote with their accepts.
    fn requested(&self) -> impl Future<Output = Result<Vec<(String, i64)>, BoxError>> + Send;

    /// The rows that handlers wrote: name, and the lease under which.
    fn handled(&self) -> impl Future<Output = Result<Vec<(String, i64)>, BoxError>> + Send;

    /// What the server is doing, for a person.
    fn activity(&self) -> impl Future<Output = Result<String, BoxError>> + Send;
}

#[derive(Debug, Clone)]
pub(crate) struct Sqlite {
    dir: PathBuf,
}

impl Sqlite {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    fn file(&self) -> String {
        self.dir.join("inbox.db").to_string_lossy().into_owned()
    }

    async fn store(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::connect(&self.file()).await
    }

    async fn connect(&self) -> sqlx::Result<SqliteConnection> {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.file());
        sqlx::ConnectOptions::connect(&options).await
    }

    #[expect(clippy::unused_async, reason = "as the one that has a server")]
    async fn doing(&self) -> Result<String, BoxError> {
        Ok("a file has no server".to_owned())
    }

    #[expect(clippy::unused_self, reason = "a file belongs to one round; the tables of a server are shared")]
    fn table(&self, name: &str) -> String {
        name.to_owned()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Postgres {
    dir: PathBuf,
    url: String,
    schema: String,
}

impl Postgres {
    pub(crate) fn new(dir: &Path, url: &str, schema: &str) -> Self {
        Self { dir: dir.to_owned(), url: url.to_owned(), schema: schema.to_owned() }
    }

    async fn store(&self) -> Result<PostgresStore, StoreError> {
        let options: PostgresOptions = self.url.parse()?;
        let options = options.schema(&self.schema)?.connections(8).call_timeout(Duration::from_secs(5));
        PostgresStore::open(options).await
    }

    async fn connect(&self) -> sqlx::Result<PgConnection> {
        PgConnection::connect(&self.url).await
    }

    async fn doing(&self) -> Result<String, BoxError> {
        let mut db = self.connect().await?;
        let lines: Vec<String> = sqlx::query_scalar(ACTIVITY).fetch_all(&mut db).await?;
        Ok(lines.join("\n"))
    }

    /// Not in the inbox's own schema, which has to be as the migrations left it.
    fn table(&self, name: &str) -> String {
        format!("{name}_{}", self.schema)
    }
}

/// Each session with what it waits for, and for whom. The statements bind their values, so none is shown.
const ACTIVITY: &str = "SELECT concat_ws(' ', pid, pg_blocking_pids(pid), state, wait_event_type, wait_event, \
    'in transaction for', now() - xact_start, 'since', now() - state_change, left(query, 200)) \
    FROM pg_stat_activity WHERE backend_type = 'client backend' ORDER BY pid";

/// The same statements for both databases; only the types of their drivers differ.
macro_rules! backend {
    ($backend:ty, $store:ty, $tx:ty, $begin:literal) => {
        impl Backend for $backend {
            type Store = $store;

            fn dir(&self) -> &Path {
                &self.dir
            }

            async fn open(&self) -> Result<$store, StoreError> {
                self.store().await
            }

            async fn make_tables(&self) -> Result<(), BoxError> {
                let mut db = self.connect().await?;
                for (table, number) in [("effect", "generation"), ("request", "nonce")] {
                    let table = self.table(table);
                    let create =
                        format!("CREATE TABLE {table} (name text NOT NULL, {number} bigint NOT NULL)");
                    sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut db).await?;
                }
                Ok(())
            }

            fn handler_in_transaction(
                &self,
                builder: CrashBuilder<Self>,
                store: $store,
            ) -> CrashBuilder<Self> {
                let table = self.table("effect");
                let handler = move |step: InTransaction,
                                    context: Context,
                                    effects: State<Effects>,
                                    store: State<$store>,
                                    mut tx: $tx| {
                    let table = table.clone();
                    async move {
                        let (State(effects), State(store)) = (effects, store);
                        effects.switch.pass("transaction.before_effect");
                        let insert = insert(&table, &step.0.name(), context.lease().generation);
                        sqlx::raw_sql(AssertSqlSafe(insert)).execute(&mut *tx).await?;
                        store
                            .append_in(&mut tx, vec![follow_up(&step.0)])
                            .await
                            .map_err(HandlerError::retryable)?;
                        effects.switch.pass("transaction.after_effect");
                        Ok::<(), HandlerError>(())
                    }
                };
                builder.state(store).handler(handler)
            }

            async fn accept_with_row(
                &self,
                inbox: &CrashInbox<Self>,
                effects: &Effects,
                step: Step,
                key: Option<String>,
                session: Option<String>,
            ) -> Result<Receipt, AcceptError> {
                let mut db = self.connect().await.map_err(away)?;
                let mut tx = db.begin_with($begin).await.map_err(away)?;
                let insert = insert(&self.table("request"), &step.name(), step.nonce);
                let accept = inbox.accept_in(&mut *tx, &step);
                let receipt = finish(accept, key, session).await?;
                if receipt.is_new() {
                    sqlx::raw_sql(AssertSqlSafe(insert)).execute(&mut *tx).await.map_err(away)?;
                }
                effects.switch.pass("commit.before");
                tx.commit().await.map_err(away)?;
                effects.switch.pass("commit.after");
                Ok(receipt)
            }

            async fn requested(&self) -> Result<Vec<(String, i64)>, BoxError> {
                self.rows("request", "nonce").await
            }

            async fn handled(&self) -> Result<Vec<(String, i64)>, BoxError> {
                self.rows("effect", "generation").await
            }

            async fn activity(&self) -> Result<String, BoxError> {
                self.doing().await
            }
        }

        impl $backend {
            async fn rows(&self, table: &str, number: &str) -> Result<Vec<(String, i64)>, BoxError> {
                let select = format!("SELECT name, {number} FROM {} ORDER BY name", self.table(table));
                let mut db = self.connect().await?;
                Ok(sqlx::query_as(AssertSqlSafe(select)).fetch_all(&mut db).await?)
            }
        }
    };
}

backend!(Sqlite, SqliteStore, SqliteTx, "BEGIN IMMEDIATE");
backend!(Postgres, PostgresStore, PostgresTx, "BEGIN");

/// The names are our own, of letters, digits, dashes and slashes.
fn insert(table: &str, name: &str, number: i64) -> String {
    format!("INSERT INTO {table} VALUES ('{name}', {number})")
}

fn follow_up(step: &Step) -> AppendGroup {
    let message = NewMessage::encode(&FollowUp(step.name()), Metadata::default());
    AppendGroup::from(message.expect("a name has a form"))
}

/// Gives an accept its key and its session.
pub(crate) fn finish<T>(
    accept: Accept<'_, T>,
    key: Option<String>,
    session: Option<String>,
) -> Accept<'_, T> {
    let accept = key.iter().fold(accept, Accept::idempotency_key);
    session.iter().fold(accept, Accept::session)
}

/// The application's own statement failed: the caller tries the whole transaction again.
fn away(error: sqlx::Error) -> AcceptError {
    StoreError::new(mailslot_core::StoreErrorKind::Unavailable, "application", error.to_string()).into()
}
