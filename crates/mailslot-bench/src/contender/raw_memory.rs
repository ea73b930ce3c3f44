//! The raw reference in memory: a lock around two maps and a set.

use super::{RawMessage, Setup, raw};
use async_trait::async_trait;
use mailslot_load::{Contender, Latencies, Probe, Worker};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

/// What a store in memory needs at the very least.
#[derive(Debug, Default)]
pub(crate) struct MemoryTables {
    last_seq: i64,
    messages: HashMap<i64, RawMessage>,
    ledger: HashMap<[u8; 32], i64>,
    ready: BTreeSet<(i64, i64)>,
    leased: HashMap<i64, i64>,
    outcomes: HashMap<i64, i64>,
    last_lease: i64,
}

impl MemoryTables {
    pub(crate) fn accept(&mut self, message: RawMessage) {
        self.last_seq += 1;
        let seq = self.last_seq;
        if let Some((key, _)) = message.ledger {
            self.ledger.insert(key, seq);
        }
        self.messages.insert(seq, message);
        self.ready.insert((now_us(), seq));
    }

    /// Claims the oldest due messages.
    pub(crate) fn claim(&mut self, limit: usize) -> Vec<(i64, RawMessage)> {
        let now = now_us();
        self.last_lease += 1;
        let mut claimed = Vec::new();
        while claimed.len() < limit {
            let Some(&(due_at, seq)) = self.ready.first() else { break };
            if due_at > now {
                break;
            }
            self.ready.pop_first();
            self.leased.insert(seq, self.last_lease);
            claimed.push((seq, self.messages[&seq].clone()));
        }
        claimed
    }

    /// Completes messages.
    pub(crate) fn settle(&mut self, seqs: &[i64]) {
        let now = now_us();
        for seq in seqs {
            if self.leased.remove(seq).is_some() {
                self.outcomes.insert(*seq, now);
            }
        }
    }
}

fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// The tables with a worker.
pub(crate) struct RawMemory {
    tables: Mutex<MemoryTables>,
    news: Notify,
    completed: AtomicU64,
    probe: Probe,
    concurrency: usize,
    /// Whether the worker runs: callers, who never wait for anything, must then let it have its turn.
    works: AtomicBool,
}

impl RawMemory {
    pub(super) fn open(setup: &Setup) -> Self {
        Self {
            tables: Mutex::default(),
            news: Notify::new(),
            completed: AtomicU64::new(0),
            probe: Probe::new(setup.handler),
            concurrency: setup.concurrency,
            works: AtomicBool::new(false),
        }
    }

    fn tables(&self) -> MutexGuard<'_, MemoryTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the handlers of a claim, all of them before it returns.
    async fn handle(&self, claimed: Vec<(i64, RawMessage)>) -> Vec<i64> {
        let (done, mut finished) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(self.concurrency));
        let mut seqs = Vec::with_capacity(claimed.len());
        for (seq, message) in claimed {
            self.probe.started_payload(&message.payload);
            let Some(time) = self.probe.handler else {
                seqs.push(seq);
                continue;
            };
            let (permits, done) = (permits.clone(), done.clone());
            tokio::spawn(async move {
                let _permit = permits.acquire().await;
                tokio::time::sleep(time).await;
                // Who waits may have gone.
                let _ = done.send(seq);
            });
        }
        drop(done);
        while let Some(seq) = finished.recv().await {
            seqs.push(seq);
        }
        seqs
    }

    async fn work(&self) {
        loop {
            let claimed = self.tables().claim(raw::CLAIM_MAX);
            if claimed.is_empty() {
                self.news.notified().await;
                continue;
            }
            let seqs = self.handle(claimed).await;
            self.tables().settle(&seqs);
            self.completed.fetch_add(seqs.len() as u64, Ordering::Relaxed);
            // Nothing here waits, so the others need their turn.
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Contender for RawMemory {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        let message = RawMessage::new(keyed);
        self.tables().accept(message);
        self.news.notify_one();
        if self.works.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        let batch: Vec<_> = (0..messages).map(|_| RawMessage::new(true)).collect();
        let mut tables = self.tables();
        for message in batch {
            tables.accept(message);
        }
        self.news.notify_one();
        Ok(())
    }

    fn commits(&self) -> u64 {
        0
    }

    fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Worker for RawMemory {
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        self.works.store(true, Ordering::Relaxed);
        tokio::select! {
            () = self.work() => {}
            // A dropped sender means stop as well.
            _ = stop => {}
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
