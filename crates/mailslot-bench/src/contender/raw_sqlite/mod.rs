//! The raw reference on SQLite: the same layout idea and the same pragmas, plain prepared statements, no engine.
//!
//! One thread owns the only connection. It puts all accepts that wait into one transaction, then settles what is
//! finished and claims what is next in another one, as the inbox does. It checks nothing: no fence, no attempts, no
//! sessions, no counters, no duplicate's receipt.

mod statements;
mod thread;

pub(crate) use statements::{Statements, open};

use super::{RawMessage, Setup, raw};
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use mailslot_load::{Contender, Latencies, Probe, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thread::{Command, Writer};
use tokio::sync::{mpsc, oneshot};

/// A handle on the writing thread, which ends with it.
pub(super) struct RawSqlite {
    commands: mpsc::Sender<Command>,
    counters: Arc<Counters>,
    probe: Probe,
    concurrency: usize,
}

/// What the thread counts.
#[derive(Debug, Default)]
struct Counters {
    commits: AtomicU64,
    completed: AtomicU64,
}

impl RawSqlite {
    /// Opens the file and starts the thread, which puts at most `coalesce` messages into one transaction.
    pub(super) fn open(setup: &Setup, coalesce: usize) -> anyhow::Result<Self> {
        let db = open(setup.place.file()?, setup.durability)?;
        let (commands, received) = mpsc::channel(raw::QUEUE);
        let counters = Arc::<Counters>::default();
        let writer = Writer::new(db, received, commands.downgrade(), counters.clone(), coalesce);
        std::thread::Builder::new().name("raw-writer".into()).spawn(move || writer.run())?;
        Ok(Self { commands, counters, probe: Probe::new(setup.handler), concurrency: setup.concurrency })
    }

    async fn store(&self, messages: Vec<RawMessage>) -> anyhow::Result<()> {
        let (answer, answered) = oneshot::channel();
        let sent = self.commands.send(Command::Accept(messages, answer)).await;
        sent.map_err(|_| anyhow!("the raw writer stopped"))?;
        answered.await.context("the raw writer stopped")?
    }
}

#[async_trait]
impl Contender for RawSqlite {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        self.store(vec![RawMessage::new(keyed)]).await
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        self.store((0..messages).map(|_| RawMessage::new(true)).collect()).await
    }

    fn commits(&self) -> u64 {
        self.counters.commits.load(Ordering::Relaxed)
    }

    fn completed(&self) -> u64 {
        self.counters.completed.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Worker for RawSqlite {
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let work = Command::Work(self.probe.clone(), self.concurrency);
        self.commands.send(work).await.map_err(|_| anyhow!("the raw writer stopped"))?;
        // A dropped sender means stop as well.
        let _ = stop.await;
        let (stopped_sender, stopped) = oneshot::channel();
        let rest = Command::Rest(stopped_sender);
        self.commands.send(rest).await.map_err(|_| anyhow!("the raw writer stopped"))?;
        stopped.await.context("the raw writer stopped")
    }

    fn record(&self, recording: bool) {
        self.probe.record(recording);
    }

    fn starts(&self) -> Latencies {
        self.probe.take()
    }
}
