//! What is measured: our inbox, and the raw references beside it, behind one trait.

mod processes;
mod raw;
mod raw_memory;
mod raw_postgres;
mod raw_sqlite;
mod raw_sqlx;
mod transaction;

pub(crate) use processes::{WORKER_ARGUMENT, serve};
pub(crate) use raw::RawMessage;
pub(crate) use raw_memory::MemoryTables;
pub(crate) use raw_postgres::{Claimed, Claimer, Claims, Flusher, create as create_tables};
pub(crate) use raw_sqlite::{Statements, open as open_tables};
pub(crate) use transaction::open as open_transaction;

use crate::options::Durability;
use anyhow::{Context as _, bail};
use mailslot::AnyStore;
use mailslot::postgres::{PostgresOptions, PostgresStore};
use mailslot::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use mailslot_load::{Contender, OurInbox, Settings, Worker};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The inbox.
    #[serde(rename = "mailslot")]
    Mailslot,
    /// The fastest raw form: plain prepared statements, coalesced as ours; for memory a lock around maps.
    #[serde(rename = "raw")]
    Raw,
    /// The same through sqlx, which has a thread of its own behind each connection to SQLite.
    #[serde(rename = "raw sqlx")]
    RawSqlx,
    /// One transaction for each message; on PostgreSQL a single insert over a pool of connections.
    #[serde(rename = "raw one by one")]
    OneByOne,
    /// The application's own change alone, without a message.
    #[serde(rename = "no message")]
    NoMessage,
    /// Another queue; the variant says which.
    #[serde(rename = "peer")]
    Peer,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mailslot => "mailslot",
            Self::Raw => "raw",
            Self::RawSqlx => "raw sqlx",
            Self::OneByOne => "raw one by one",
            Self::NoMessage => "no message",
            Self::Peer => "peer",
        }
    }
}

/// Where a contender stores.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Location {
    Memory,
    File(PathBuf),
    Schema(Schema),
}

/// A schema of a PostgreSQL server.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Schema {
    /// It may hold a password.
    pub(crate) url: String,
    pub(crate) name: String,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema({})", self.name)
    }
}

impl Location {
    pub(crate) fn file(&self) -> anyhow::Result<&Path> {
        if let Self::File(path) = self { Ok(path) } else { bail!("{self:?} is no file") }
    }

    pub(crate) fn schema(&self) -> anyhow::Result<&Schema> {
        if let Self::Schema(schema) = self { Ok(schema) } else { bail!("{self:?} is no schema") }
    }
}

/// How a contender is opened.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) durability: Durability,
    pub(crate) place: Location,
    pub(crate) concurrency: usize,
    /// How long a handler waits; not at all by default.
    pub(crate) handler: Option<Duration>,
    /// How the raw reference on PostgreSQL claims.
    pub(crate) claims: Claims,
    /// Accepts of ours wait while a message has been due for longer than this; by default they do not.
    pub(crate) max_age: Option<Duration>,
    /// Other processes that execute, instead of this one, and share the concurrency; none by default.
    pub(crate) processes: usize,
}

/// Opens a contender.
pub(crate) async fn open(kind: Kind, setup: &Setup) -> anyhow::Result<Arc<dyn Contender>> {
    Ok(match (kind, setup.durability) {
        (Kind::RawSqlx, _) => Arc::new(raw_sqlx::RawSqlx::open(setup).await?),
        (Kind::OneByOne, Durability::Postgres) => Arc::new(raw_postgres::OneByOne::open(setup).await?),
        (Kind::OneByOne, _) => Arc::new(raw_sqlite::RawSqlite::open(setup, 1)?),
        _ => open_worker(kind, setup).await?,
    })
}

/// Opens a contender that executes.
pub(crate) async fn open_worker(kind: Kind, setup: &Setup) -> anyhow::Result<Arc<dyn Worker>> {
    let here: Arc<dyn Worker> = match (kind, setup.durability) {
        (Kind::Mailslot, _) => {
            let Setup { concurrency, handler, max_age, .. } = *setup;
            let settings = Settings { concurrency, handler, max_age };
            Arc::new(OurInbox::build(open_store(setup).await?, settings)?)
        }
        (_, Durability::Memory) => Arc::new(raw_memory::RawMemory::open(setup)),
        (_, Durability::Postgres) => Arc::new(raw_postgres::RawPostgres::open(setup).await?),
        _ => Arc::new(raw_sqlite::RawSqlite::open(setup, raw::COALESCE_MAX)?),
    };
    Ok(match setup.processes {
        0 => here,
        count => Arc::new(processes::Processes::new(here, kind, setup, count)?),
    })
}

/// Opens our store.
pub(crate) async fn open_store(setup: &Setup) -> anyhow::Result<AnyStore> {
    let synchronous = match setup.durability {
        Durability::Memory => return Ok(AnyStore::new(mailslot::MemoryStore::new())),
        Durability::Postgres => return Ok(AnyStore::new(open_postgres(setup.place.schema()?).await?)),
        Durability::Full => Synchronous::Full,
        Durability::Normal => Synchronous::Normal,
    };
    let options = SqliteOptions::new(setup.place.file()?).synchronous(synchronous);
    Ok(AnyStore::new(SqliteStore::open(options).await.context("failed to open the store")?))
}

/// Opens our store in a schema.
async fn open_postgres(schema: &Schema) -> anyhow::Result<PostgresStore> {
    let options: PostgresOptions = schema.url.parse()?;
    PostgresStore::open(options.schema(&schema.name)?).await.context("failed to open the store")
}
