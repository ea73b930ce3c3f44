//! What is measured, the same for every queue.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Jobs that handlers of this process were given.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// How long the first twentieth may take.
const FIRST_MAX: Duration = Duration::from_mins(1);

/// How long a whole backlog may take.
const LAST_MAX: Duration = Duration::from_mins(10);

/// A queue.
#[async_trait]
pub(crate) trait Peer: Send + Sync {
    /// Enqueues one job; `caller` tells callers apart that need a client of their own.
    async fn enqueue(&self, caller: usize) -> anyhow::Result<()>;

    /// Enqueues many jobs, however it does that best.
    async fn fill(&self, jobs: usize) -> anyhow::Result<()>;

    /// Works until the task is aborted.
    async fn work(&self) -> anyhow::Result<()>;

    /// Jobs that were handled so far.
    async fn handled(&self) -> u64 {
        HANDLED.load(Ordering::Relaxed)
    }

    /// Enqueues in a closed loop by other means than this program's; `None` if it does not.
    async fn enqueue_elsewhere(&self, _callers: usize, _time: Duration) -> anyhow::Result<Option<Found>> {
        Ok(None)
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) messages: u64,
    pub(crate) per_second: f64,
}

/// Handlers were given so many jobs.
pub(crate) fn handle(jobs: u64) {
    HANDLED.fetch_add(jobs, Ordering::Relaxed);
}

/// Callers enqueue one job after the other.
pub(crate) async fn enqueue(peer: Arc<dyn Peer>, callers: usize, time: Duration) -> anyhow::Result<Found> {
    if let Some(found) = peer.enqueue_elsewhere(callers, time).await? {
        return Ok(found);
    }
    let (done, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (peer, done, over) = (peer.clone(), done.clone(), over.clone());
        tasks.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                peer.enqueue(caller).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    tokio::time::sleep(time / 4).await;
    let (since, before) = (Instant::now(), done.load(Ordering::Relaxed));
    tokio::time::sleep(time).await;
    let (messages, elapsed) = (done.load(Ordering::Relaxed) - before, since.elapsed());
    over.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(found(messages, elapsed))
}

/// A worker executes a backlog; the middle of it is measured, from a twentieth to nineteen of them.
pub(crate) async fn execute(peer: Arc<dyn Peer>, jobs: usize) -> anyhow::Result<Found> {
    peer.fill(jobs).await?;
    let worker = tokio::spawn({
        let peer = peer.clone();
        async move { peer.work().await }
    });
    let part = |twentieths: usize| (jobs * twentieths / 20) as u64;
    let first = wait_for(&*peer, &worker, part(1), FIRST_MAX).await?;
    let since = Instant::now();
    let last = wait_for(&*peer, &worker, part(19), LAST_MAX).await?;
    let elapsed = since.elapsed();
    worker.abort();
    Ok(found(last - first, elapsed))
}

async fn wait_for(
    peer: &dyn Peer,
    worker: &tokio::task::JoinHandle<anyhow::Result<()>>,
    jobs: u64,
    time: Duration,
) -> anyhow::Result<u64> {
    let since = Instant::now();
    loop {
        let handled = peer.handled().await;
        if handled >= jobs {
            return Ok(handled);
        }
        anyhow::ensure!(
            since.elapsed() < time && !worker.is_finished(),
            "{handled} of {jobs} jobs were handled"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of one run")]
fn found(messages: u64, elapsed: Duration) -> Found {
    Found { messages, per_second: messages as f64 / elapsed.as_secs_f64().max(1e-9) }
}
