//! apalis on PostgreSQL, with an idempotency key for each job, as it has one.

use crate::measure::{Peer, handle};
use crate::payload::Work;
use apalis::prelude::{BoxDynError, ParallelizeExt as _, TaskBuilder, WorkerBuilder, WorkerBuilderExt as _};
use apalis_postgres::{Config, PostgresStorage};
use async_trait::async_trait;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use uuid::Uuid;

pub(crate) const ABOUT: (&str, &str) =
    ("1.0.0", "idempotency keys, batch 500, concurrency 64, parallel handlers");

const CONNECTIONS: u32 = 32;
const QUEUE: &str = "work";
const FILL: usize = 1_000;

/// A pool, as its storage has one.
pub(crate) struct Apalis {
    pool: PgPool,
}

impl Apalis {
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        PostgresStorage::setup(&pool).await?;
        Ok(Self { pool })
    }

    async fn push(&self, jobs: usize) -> anyhow::Result<()> {
        let job = || {
            let bytes = serde_json::to_vec(&Work::new())?;
            let key = Uuid::new_v4().to_string();
            anyhow::Ok(TaskBuilder::new(bytes).idempotency_key(key).build())
        };
        let jobs = (0..jobs).map(|_| job()).collect::<Result<Vec<_>, _>>()?;
        let mut connection = self.pool.acquire().await?;
        Ok(apalis_postgres::queries::push_tasks(&mut *connection, QUEUE, jobs).await?)
    }
}

async fn work(_: Work) -> Result<(), BoxDynError> {
    handle(1);
    Ok(())
}

#[async_trait]
impl Peer for Apalis {
    async fn enqueue(&self, _caller: usize) -> anyhow::Result<()> {
        self.push(1).await
    }

    async fn fill(&self, jobs: usize) -> anyhow::Result<()> {
        for begin in (0..jobs).step_by(FILL) {
            self.push(FILL.min(jobs - begin)).await?;
        }
        Ok(())
    }

    async fn work(&self) -> anyhow::Result<()> {
        let (pool, runtime) = (self.pool.clone(), tokio::runtime::Handle::current());
        let (ended, end) = tokio::sync::oneshot::channel();
        // On a thread of its own, because the compiler does not see that the worker's future may change threads.
        std::thread::spawn(move || {
            let config = Config::default().queue(QUEUE).batch_size(500);
            let backend = PostgresStorage::new(&pool).with_config(config);
            let worker = WorkerBuilder::new("worker")
                .backend(backend)
                .concurrency(64)
                .parallelize(tokio::spawn)
                .build(work);
            let _entered = runtime.enter();
            // Nobody listens any more when enough was measured.
            let _ = ended.send(runtime.block_on(worker.run()));
        });
        Ok(end.await??)
    }
}
