//! A message that commits together with a change of the application's own, over a pool of connections.

use super::{Kind, RawMessage, Schema, Setup, open_postgres, raw_postgres};
use anyhow::ensure;
use async_trait::async_trait;
use mailslot::Inbox;
use mailslot::postgres::PostgresStore;
use mailslot_load::{Contender, Work};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Connections of the application.
const CONNECTIONS: u32 = 32;

const ORDERS: &str = "CREATE TABLE orders (id uuid PRIMARY KEY, total bigint NOT NULL, note text NOT NULL)";

const CHANGE: &str = "INSERT INTO orders (id, total, note) VALUES ($1, 1990, 'as usual')";

/// Message, ledger and ready as the coalesced reference writes them, for one message.
const MESSAGE: &str = "
WITH led AS (
    INSERT INTO ledger (key, seq) VALUES ($2, nextval('seq')) ON CONFLICT DO NOTHING RETURNING seq
), msg AS (
    INSERT INTO message (seq, id, endpoint, contract, version, payload, headers)
    SELECT seq, $1, 1, 'bench.work', 1, $3, '{}' FROM led RETURNING seq
)
INSERT INTO ready (endpoint, due_at, seq) SELECT 1, now(), seq FROM msg";

/// An application that changes something and sends a message about it.
struct Application {
    pool: PgPool,
    message: Message,
    commits: AtomicU64,
}

enum Message {
    Ours(Box<Inbox<PostgresStore>>),
    Raw,
    Nothing,
}

/// Opens an application of this kind.
pub(crate) async fn open(kind: Kind, setup: &Setup) -> anyhow::Result<Arc<dyn Contender>> {
    let schema = setup.place.schema()?;
    let message = match kind {
        Kind::Mailslot => {
            let store = open_postgres(schema).await?;
            Message::Ours(Box::new(Inbox::builder(store).contract::<Work>().build()?))
        }
        Kind::NoMessage => Message::Nothing,
        _ => Message::Raw,
    };
    raw_postgres::create(schema).await?;
    let pool = pool(schema).await?;
    sqlx::query(ORDERS).execute(&pool).await?;
    Ok(Arc::new(Application { pool, message, commits: AtomicU64::new(0) }))
}

async fn pool(schema: &Schema) -> anyhow::Result<PgPool> {
    let options = PgConnectOptions::from_str(&schema.url)?.options([("search_path", schema.name.as_str())]);
    // The test would be one more round trip for each transaction of all contenders.
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
    Ok(pool.connect_with(options).await?)
}

impl Application {
    async fn send(&self, db: &mut PgConnection, keyed: bool) -> anyhow::Result<()> {
        match &self.message {
            Message::Nothing => Ok(()),
            Message::Ours(inbox) => {
                let accept = inbox.accept_in(db, &Work::now());
                let key = || Uuid::new_v4().to_string();
                let accept = if keyed { accept.idempotency_key(key()) } else { accept };
                accept.await?;
                Ok(())
            }
            Message::Raw => {
                // A key in any case: without one the statement would have to be another.
                let RawMessage { id, ledger, payload } = RawMessage::new(true);
                let key = ledger.map(|(key, _)| key.to_vec());
                let stored = sqlx::query(MESSAGE).bind(id).bind(key).bind(payload).execute(db).await?;
                ensure!(stored.rows_affected() == 1, "the message was not stored");
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Contender for Application {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query(CHANGE).bind(Uuid::now_v7()).execute(&mut *transaction).await?;
        self.send(&mut transaction, keyed).await?;
        transaction.commit().await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        let mut transaction = self.pool.begin().await?;
        for _ in 0..messages {
            self.send(&mut transaction, true).await?;
        }
        transaction.commit().await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}
