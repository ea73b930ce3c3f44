//! The raw reference on PostgreSQL: the layout of our store's idea, plain prepared statements over another driver, no
//! engine.
//!
//! Two connections store what waits, up to 512 messages in one statement that inserts message, ledger and ready; some
//! others claim (delete from ready by key, skipping what is locked, and insert the lease) and settle (delete the lease,
//! insert the outcomes). A claim starts where the last one ended, and once a second at the beginning. It checks nothing:
//! no fence beyond the lease row, no attempts, no sessions, no counters, no duplicate's receipt.

mod claim;
mod flush;
mod one_by_one;
mod tables;

pub(crate) use claim::{Claimed, Claimer};
pub(crate) use flush::Flusher;
pub(super) use one_by_one::OneByOne;
pub(crate) use tables::create;

use super::{RawMessage, Schema, Setup, raw};
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use mailslot_load::{Contender, Latencies, Probe, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::JoinSet;

/// Connections that store: while the log of one statement is synced, the other one runs.
const FLUSHERS: usize = 2;

/// Who claims, and how much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) connections: usize,
    pub(crate) batch: usize,
}

impl Default for Claims {
    /// What was best for both jobs at once.
    fn default() -> Self {
        Self { connections: 2, batch: 200 }
    }
}

/// A handle on the connections that store, which end with it.
pub(super) struct RawPostgres {
    schema: Schema,
    accepts: mpsc::Sender<Accept>,
    shared: Arc<Shared>,
    probe: Probe,
    concurrency: usize,
    claims: Claims,
}

/// Messages to store, and who waits for them.
type Accept = (Vec<RawMessage>, oneshot::Sender<anyhow::Result<()>>);

/// What the connections share.
#[derive(Debug, Default)]
struct Shared {
    commits: AtomicU64,
    completed: AtomicU64,
    news: Notify,
    stopping: AtomicBool,
}

impl RawPostgres {
    pub(super) async fn open(setup: &Setup) -> anyhow::Result<Self> {
        let schema = setup.place.schema()?.clone();
        tables::create(&schema).await?;
        let (accepts, received) = mpsc::channel(raw::QUEUE);
        let (received, shared) = (Arc::new(Mutex::new(received)), Arc::<Shared>::default());
        for _ in 0..FLUSHERS {
            let flusher = Flusher::open(&schema).await?;
            tokio::spawn(flush_all(flusher, received.clone(), shared.clone()));
        }
        let probe = Probe::new(setup.handler);
        Ok(Self { schema, accepts, shared, probe, concurrency: setup.concurrency, claims: setup.claims })
    }

    async fn store(&self, messages: Vec<RawMessage>) -> anyhow::Result<()> {
        let (answer, answered) = oneshot::channel();
        self.accepts.send((messages, answer)).await.map_err(|_| anyhow!("the raw writer stopped"))?;
        answered.await.context("the raw writer stopped")?
    }
}

async fn flush_all(flusher: Flusher, accepts: Arc<Mutex<mpsc::Receiver<Accept>>>, shared: Arc<Shared>) {
    loop {
        let gathered = {
            let mut accepts = accepts.lock().await;
            let Some((mut messages, answer)) = accepts.recv().await else { return };
            let mut answers = vec![answer];
            while messages.len() < raw::COALESCE_MAX {
                let Ok((more, answer)) = accepts.try_recv() else { break };
                messages.extend(more);
                answers.push(answer);
            }
            (messages, answers)
        };
        let (messages, answers) = gathered;
        let stored = flusher.store(messages).await;
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.news.notify_waiters();
        for answer in answers {
            let stored = stored.as_ref().copied().map_err(|error| anyhow!("failed to store: {error:#}"));
            // A caller that stopped waiting needs no answer.
            let _ = answer.send(stored);
        }
    }
}

#[async_trait]
impl Contender for RawPostgres {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        self.store(vec![RawMessage::new(keyed)]).await
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        self.store((0..messages).map(|_| RawMessage::new(true)).collect()).await
    }

    fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    fn completed(&self) -> u64 {
        self.shared.completed.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Worker for RawPostgres {
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let mut claimers = JoinSet::new();
        let permits = Arc::new(tokio::sync::Semaphore::new(self.concurrency));
        for _ in 0..self.claims.connections {
            let claimer = Claimer::open(&self.schema, self.claims.batch).await?;
            let work = claim::Work {
                claimer,
                shared: self.shared.clone(),
                probe: self.probe.clone(),
                permits: permits.clone(),
            };
            claimers.spawn(work.run());
        }
        // A dropped sender means stop as well.
        let _ = stop.await;
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.news.notify_waiters();
        while let Some(stopped) = claimers.join_next().await {
            stopped??;
        }
        Ok(())
    }

    fn record(&self, recording: bool) {
        self.probe.record(recording);
    }

    fn starts(&self) -> Latencies {
        self.probe.take()
    }
}
