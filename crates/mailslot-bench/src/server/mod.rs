//! The PostgreSQL server of a run: the one that was named, or a private one.

mod costs;
mod private;
mod snapshot;

pub(crate) use snapshot::Snapshot;

use crate::contender::Schema;
use anyhow::Context as _;
use async_trait::async_trait;
use costs::Processes;
use mailslot_load::{ServerGauge, ServerReading};
use mailslot_servers::PostgresServer;
use serde::Serialize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_postgres::{Client, NoTls};

/// How long to wait for the locks of a schema that is to be dropped: what worked in it is gone by then.
const DROP_SCHEMA: &str =
    "SET lock_timeout = '20s'; SET client_min_messages = warning; DROP SCHEMA IF EXISTS ";

/// A server that answers.
pub(crate) struct Server {
    url: String,
    client: Client,
    processes: Option<Processes>,
    schemas: AtomicU32,
    /// Schemas whose samples are over.
    used: Mutex<Vec<String>>,
    _private: Option<PostgresServer>,
}

/// What a reader must know of a server to compare.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) fsync: String,
    pub(crate) synchronous_commit: String,
    pub(crate) shared_buffers: String,
    pub(crate) max_wal_size: String,
    /// Whether it runs on this machine, so that its CPU time can be read.
    pub(crate) local: bool,
}

impl Server {
    /// Connects to the server that was named, or starts one.
    pub(crate) async fn start(url: Option<&str>) -> anyhow::Result<Self> {
        let private = if url.is_none() { Some(private::start().await?) } else { None };
        let url = url.map(str::to_owned).or_else(|| private.as_ref().map(PostgresServer::url));
        let url = url.context("either a URL was given or a server was started")?;
        let client = connect(&url).await?;
        let processes = Processes::of(&client).await?;
        let (schemas, used) = (AtomicU32::new(0), Mutex::default());
        Ok(Self { url, client, processes, schemas, used, _private: private })
    }

    /// It may hold a password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn facts(&self) -> anyhow::Result<Facts> {
        let sql = "SELECT current_setting('server_version'), current_setting('fsync'),
            current_setting('synchronous_commit'), current_setting('shared_buffers'), current_setting('max_wal_size')";
        let row = self.client.query_one(sql, &[]).await?;
        Ok(Facts {
            version: row.get(0),
            fsync: row.get(1),
            synchronous_commit: row.get(2),
            shared_buffers: row.get(3),
            max_wal_size: row.get(4),
            local: self.processes.is_some(),
        })
    }

    /// A new schema of its own for one sample.
    pub(crate) async fn schema(&self) -> anyhow::Result<Schema> {
        self.clean().await?;
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        let name = format!("mailslot_bench_{}_{number}", std::process::id());
        self.client.batch_execute(&format!("CREATE SCHEMA {name}")).await.context("cannot make a schema")?;
        Ok(Schema { url: self.url.clone(), name })
    }

    /// The sample in this schema is over; it is dropped before the next one begins, so that no sample pays for it.
    pub(crate) fn over(&self, schema: &str) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(schema.to_owned());
    }

    /// Drops the schemas of samples that are over.
    pub(crate) async fn clean(&self) -> anyhow::Result<()> {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        for name in used {
            let sql = format!("{DROP_SCHEMA}{name} CASCADE");
            self.client
                .batch_execute(&sql)
                .await
                .with_context(|| format!("cannot drop the schema {name}"))?;
        }
        Ok(())
    }

    /// Takes a snapshot of the database and holds it until the value is dropped.
    pub(crate) async fn hold_snapshot(&self) -> anyhow::Result<Snapshot> {
        Snapshot::take(&self.url).await
    }
}

#[async_trait]
impl ServerGauge for Server {
    async fn read(&self) -> anyhow::Result<ServerReading> {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        let wal_bytes: i64 = self.client.query_one(sql, &[]).await?.get(0);
        let cpu = self.processes.as_ref().map(Processes::cpu);
        Ok(ServerReading { wal_bytes: u64::try_from(wal_bytes).unwrap_or_default(), cpu })
    }
}

/// Connects; the connection lives as long as the client.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    // The driver's error names neither password nor URL.
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.context("cannot connect to PostgreSQL")?;
    // Whoever uses the client sees a broken connection by themselves.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}
