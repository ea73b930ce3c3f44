//! Claiming and settling.

use super::{Shared, tables};
use crate::contender::Schema;
use anyhow::Context as _;
use mailslot_load::Probe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

/// The limit is part of the text: as a parameter the planner would guess it.
const CLAIM: &str = "
WITH due AS MATERIALIZED (
    SELECT endpoint, due_at, seq FROM ready
    WHERE endpoint = 1 AND due_at <= now() AND due_at >= $2
    ORDER BY endpoint, due_at, seq LIMIT {limit} FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM ready USING due
    WHERE ready.endpoint = due.endpoint AND ready.due_at = due.due_at AND ready.seq = due.seq
    RETURNING ready.seq, ready.attempt, ready.due_at
), held AS (
    INSERT INTO lease (owner, until, seqs, attempts)
    SELECT $1, now() + interval '1 min', array_agg(seq ORDER BY seq), array_agg(attempt + 1 ORDER BY seq)
    FROM gone HAVING count(*) > 0
    RETURNING id
)
SELECT message.seq, message.payload, (SELECT id FROM held), (SELECT max(due_at) FROM gone)
FROM message WHERE message.seq IN (SELECT seq FROM gone) ORDER BY message.seq";

const SETTLE: &str = "
WITH held AS (DELETE FROM lease WHERE id = $1 AND owner = $3 RETURNING id)
INSERT INTO outcome (seq, attempt, status) SELECT unnest($2::bigint[]), 1, 2 FROM held";

/// How far before the last due time a claim starts: what was committed late is usually within it.
const BACK: Duration = Duration::from_millis(100);

/// How often a claim starts at the beginning, for what was committed later still.
const SWEEP: Duration = Duration::from_secs(1);

/// How long to wait for news before looking.
const POLL: Duration = Duration::from_millis(5);

/// A connection that claims.
pub(crate) struct Claimer {
    client: Client,
    claim: Statement,
    settle: Statement,
    owner: i64,
    batch: usize,
    highest: SystemTime,
    low: SystemTime,
    swept: Instant,
}

/// What one claim got.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    pub(crate) lease: i64,
    pub(crate) seqs: Vec<i64>,
    payloads: Vec<Vec<u8>>,
}

impl Claimer {
    pub(crate) async fn open(schema: &Schema, batch: usize) -> anyhow::Result<Self> {
        let client = tables::open_pinned(schema).await?;
        let claim = CLAIM.replace("{limit}", &batch.to_string());
        let claim = client.prepare_typed(&claim, &[Type::INT8, Type::TIMESTAMPTZ]).await?;
        let settle = client.prepare(SETTLE).await?;
        let owner = client.query_one("SELECT pg_backend_pid()::bigint", &[]).await?.get(0);
        let (highest, low) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        Ok(Self { client, claim, settle, owner, batch, highest, low, swept: Instant::now() })
    }

    /// Claims the oldest due messages.
    pub(crate) async fn claim(&mut self) -> anyhow::Result<Claimed> {
        if self.swept.elapsed() > SWEEP {
            (self.low, self.swept) = (SystemTime::UNIX_EPOCH, Instant::now());
        }
        let rows = self.client.query(&self.claim, &[&self.owner, &self.low]).await?;
        let Some(first) = rows.first() else { return Ok(Claimed::default()) };
        let (lease, highest): (i64, SystemTime) = (first.get(2), first.get(3));
        self.highest = self.highest.max(highest);
        self.low = self.highest.checked_sub(BACK).unwrap_or(SystemTime::UNIX_EPOCH);
        let (seqs, payloads) = rows.iter().map(|row| (row.get::<_, i64>(0), row.get(1))).unzip();
        Ok(Claimed { lease, seqs, payloads })
    }

    /// Completes what a claim got; returns how many.
    pub(crate) async fn settle(&self, claimed: &Claimed) -> anyhow::Result<u64> {
        Ok(self.client.execute(&self.settle, &[&claimed.lease, &claimed.seqs, &self.owner]).await?)
    }
}

/// One claimer at work.
pub(super) struct Work {
    pub(super) claimer: Claimer,
    pub(super) shared: Arc<Shared>,
    pub(super) probe: Probe,
    pub(super) permits: Arc<Semaphore>,
}

impl Work {
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        while !self.shared.stopping.load(Ordering::Relaxed) {
            let claimed = self.claimer.claim().await.context("the raw claim failed")?;
            if !claimed.seqs.is_empty() {
                self.handle(&claimed).await;
                let settled = self.claimer.settle(&claimed).await.context("the raw settle failed")?;
                self.shared.completed.fetch_add(settled, Ordering::Relaxed);
                self.shared.commits.fetch_add(2, Ordering::Relaxed);
            }
            if claimed.seqs.len() < self.claimer.batch / 4 {
                // No news is as good as news: it looks again.
                let _ = tokio::time::timeout(POLL, self.shared.news.notified()).await;
            }
        }
        Ok(())
    }

    /// Runs the handlers of a claim, all of them before it returns.
    async fn handle(&self, claimed: &Claimed) {
        let mut handlers = JoinSet::new();
        for payload in &claimed.payloads {
            let Some(time) = self.probe.handler else {
                self.probe.started_payload(payload);
                continue;
            };
            let (probe, permits, payload) = (self.probe.clone(), self.permits.clone(), payload.clone());
            handlers.spawn(async move {
                let _permit = permits.acquire().await;
                probe.started_payload(&payload);
                tokio::time::sleep(time).await;
            });
        }
        handlers.join_all().await;
    }
}
