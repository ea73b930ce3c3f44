//! pgmq: its SQL functions, installed without the extension as its own crate does, called by tokio-postgres. It has no
//! key to deduplicate by, and a job that was handled is deleted without a record.

use crate::database::connect;
use crate::measure::{Peer, handle};
use crate::payload::Work;
use async_trait::async_trait;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Statement};

pub(crate) const ABOUT: (&str, &str) =
    ("1.13.0", "SQL functions, read(100) + delete on 4 connections, no key, no record");

const SENDERS: usize = 32;
const READERS: usize = 4;
const FILL: usize = 1_000;

/// A connection for each caller.
pub(crate) struct Pgmq {
    url: String,
    senders: Vec<(Client, Statement)>,
}

impl Pgmq {
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        let pool = PgPool::connect(url).await?;
        pgmq::install::install_sql_from_embedded(&pool).await?;
        sqlx::query("SELECT pgmq.create('work')").execute(&pool).await?;
        pool.close().await;
        let mut senders = Vec::new();
        for _ in 0..SENDERS {
            let client = connect(url).await?;
            let send = client.prepare("SELECT pgmq.send('work', $1::jsonb)").await?;
            senders.push((client, send));
        }
        Ok(Self { url: url.to_owned(), senders })
    }
}

#[async_trait]
impl Peer for Pgmq {
    async fn enqueue(&self, caller: usize) -> anyhow::Result<()> {
        let (client, send) = &self.senders[caller % SENDERS];
        client.query_one(send, &[&Json(Work::new())]).await?;
        Ok(())
    }

    async fn fill(&self, jobs: usize) -> anyhow::Result<()> {
        let (client, _) = &self.senders[0];
        let send = client.prepare("SELECT count(*) FROM pgmq.send_batch('work', $1::jsonb[])").await?;
        for begin in (0..jobs).step_by(FILL) {
            let batch: Vec<_> = (0..FILL.min(jobs - begin)).map(|_| Json(Work::new())).collect();
            client.query_one(&send, &[&batch]).await?;
        }
        Ok(())
    }

    async fn work(&self) -> anyhow::Result<()> {
        let mut readers = JoinSet::new();
        for _ in 0..READERS {
            let client = connect(&self.url).await?;
            readers.spawn(read(client));
        }
        while let Some(ended) = readers.join_next().await {
            ended??;
        }
        Ok(())
    }
}

async fn read(client: Client) -> anyhow::Result<()> {
    let read = client.prepare("SELECT msg_id, message FROM pgmq.read('work', 60, 100)").await?;
    let delete = client.prepare("SELECT count(*) FROM pgmq.delete('work', $1::bigint[])").await?;
    loop {
        let rows = client.query(&read, &[]).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        client.query_one(&delete, &[&ids]).await?;
        handle(ids.len() as u64);
    }
}
