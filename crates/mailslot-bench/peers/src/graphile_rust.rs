//! `graphile_worker`, the Rust port.

use crate::measure::{Peer, handle};
use crate::payload::Work;
use async_trait::async_trait;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use sqlx::postgres::PgPoolOptions;
use std::time::Duration;

pub(crate) const ABOUT: (&str, &str) =
    ("0.14.1", "concurrency 500, local queue 5,000, completions batched for 5 ms, no key, no record");

const CONNECTIONS: u32 = 32;
const FILL: usize = 1_000;

impl TaskHandler for Work {
    const IDENTIFIER: &'static str = "work";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        handle(1);
        Ok::<(), String>(())
    }
}

/// A worker with its utilities.
pub(crate) struct Graphile {
    worker: Worker,
    utils: WorkerUtils,
}

impl Graphile {
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        let worker = WorkerOptions::default()
            .concurrency(500)
            .define_job::<Work>()
            .pg_pool(pool)
            .local_queue(LocalQueueConfig::default().with_size(5_000))
            .complete_job_batch_delay(Duration::from_millis(5))
            .init()
            .await?;
        let utils = worker.create_utils();
        Ok(Self { worker, utils })
    }
}

#[async_trait]
impl Peer for Graphile {
    async fn enqueue(&self, _caller: usize) -> anyhow::Result<()> {
        self.utils.add_job(Work::new(), JobSpec::default()).await?;
        Ok(())
    }

    async fn fill(&self, jobs: usize) -> anyhow::Result<()> {
        let spec = JobSpec::default();
        for begin in (0..jobs).step_by(FILL) {
            let batch: Vec<_> = (0..FILL.min(jobs - begin)).map(|_| (Work::new(), &spec)).collect();
            self.utils.add_jobs(&batch).await?;
        }
        Ok(())
    }

    async fn work(&self) -> anyhow::Result<()> {
        Ok(self.worker.run().await?)
    }
}
