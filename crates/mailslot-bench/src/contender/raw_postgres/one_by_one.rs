//! One insert for each accept, over a pool of connections: what is written first.

use super::tables;
use crate::contender::{RawMessage, Setup};
use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use mailslot_load::Contender;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

/// Connections of the pool. Beyond it two cores get slower.
const CONNECTIONS: usize = 32;

const INSERT: &str = "
INSERT INTO inbox (id, tenant, key, fingerprint, contract, version, payload, headers)
VALUES ($1, 'default', $2, $3, 'bench.work', 1, $4, '{}') ON CONFLICT DO NOTHING RETURNING seq";

/// A pool of connections.
pub(in crate::contender) struct OneByOne {
    free: Mutex<Vec<(Client, Statement)>>,
    permits: Semaphore,
    commits: AtomicU64,
}

impl OneByOne {
    pub(in crate::contender) async fn open(setup: &Setup) -> anyhow::Result<Self> {
        let schema = setup.place.schema()?;
        tables::create(schema).await?;
        let mut free = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let client = tables::open(schema).await?;
            let insert = client.prepare(INSERT).await?;
            free.push((client, insert));
        }
        Ok(Self { free: Mutex::new(free), permits: Semaphore::new(CONNECTIONS), commits: AtomicU64::new(0) })
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<(Client, Statement)>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Contender for OneByOne {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        let RawMessage { id, ledger, payload } = RawMessage::new(keyed);
        let key = keyed.then(|| Uuid::new_v4().hyphenated().to_string());
        let fingerprint = ledger.as_ref().map(|(_, fingerprint)| &fingerprint[..]);
        let _permit = self.permits.acquire().await?;
        let (client, insert) = self.free().pop().context("a permit is there for each connection")?;
        let stored = client.query(&insert, &[&id, &key, &fingerprint, &payload]).await;
        self.free().push((client, insert));
        self.commits.fetch_add(1, Ordering::Relaxed);
        ensure!(stored?.len() == 1, "the message was not stored");
        Ok(())
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        for _ in 0..messages {
            self.accept(true).await?;
        }
        Ok(())
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}
