//! The thread that owns the connection.

use super::{Counters, Statements};
use crate::contender::{RawMessage, raw};
use anyhow::anyhow;
use mailslot_load::Probe;
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// What the thread is asked to do.
pub(super) enum Command {
    Accept(Vec<RawMessage>, oneshot::Sender<anyhow::Result<()>>),
    /// Execute with this many handlers at once.
    Work(Probe, usize),
    /// A handler is done with a message of a lease.
    Finished(i64, i64),
    /// Execute no more.
    Rest(oneshot::Sender<()>),
}

pub(super) struct Writer {
    db: Connection,
    commands: mpsc::Receiver<Command>,
    /// For handlers to report back; weak, so that the thread ends with its handle.
    reports: mpsc::WeakSender<Command>,
    runtime: tokio::runtime::Handle,
    counters: Arc<Counters>,
    coalesce: usize,
}

/// What waits for the next transactions.
#[derive(Default)]
struct Waiting {
    accepts: Vec<(Vec<RawMessage>, oneshot::Sender<anyhow::Result<()>>)>,
    messages: usize,
    finished: Vec<(i64, i64)>,
    /// Whether a claim may find something.
    may_claim: bool,
    worker: Option<Handlers>,
    /// Open messages by lease.
    leases: HashMap<i64, usize>,
}

struct Handlers {
    probe: Probe,
    permits: Arc<Semaphore>,
    concurrency: usize,
}

impl Waiting {
    fn open(&self) -> usize {
        self.leases.values().sum()
    }

    fn capacity(&self) -> usize {
        let hold = self.worker.as_ref().map_or(0, |handlers| match handlers.probe.handler {
            None => raw::CLAIM_MAX,
            Some(_) => handlers.concurrency * 2,
        });
        hold.saturating_sub(self.open() - self.finished.len())
    }

    fn has_a_turn(&self) -> bool {
        !self.finished.is_empty() || (self.may_claim && self.capacity() > 0)
    }
}

impl Writer {
    pub(super) fn new(
        db: Connection,
        commands: mpsc::Receiver<Command>,
        reports: mpsc::WeakSender<Command>,
        counters: Arc<Counters>,
        coalesce: usize,
    ) -> Self {
        Self { db, commands, reports, runtime: tokio::runtime::Handle::current(), counters, coalesce }
    }

    pub(super) fn run(self) {
        // Callers see a closed channel and say so.
        let _ = self.work();
    }

    fn work(mut self) -> rusqlite::Result<()> {
        let db = std::mem::replace(&mut self.db, Connection::open_in_memory()?);
        let mut statements = Statements::prepare(&db)?;
        let mut waiting = Waiting::default();
        loop {
            if !waiting.has_a_turn() {
                let Some(command) = self.commands.blocking_recv() else { return Ok(()) };
                take(command, &mut waiting);
            }
            while waiting.messages < self.coalesce {
                match self.commands.try_recv() {
                    Ok(command) => take(command, &mut waiting),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return Ok(()),
                }
            }
            if waiting.messages > 0 {
                self.append(&mut statements, &mut waiting);
            }
            if waiting.has_a_turn() {
                self.turn(&mut statements, &mut waiting)?;
            }
        }
    }

    fn append(&self, statements: &mut Statements<'_>, waiting: &mut Waiting) {
        let accepts = std::mem::take(&mut waiting.accepts);
        waiting.messages = 0;
        let stored = (|| {
            statements.begin()?;
            for (messages, _) in &accepts {
                statements.accept(messages)?;
            }
            statements.commit()
        })();
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        for (_, answer) in accepts {
            let stored = stored.as_ref().copied().map_err(|error| anyhow!("failed to store: {error}"));
            // A caller that stopped waiting needs no answer.
            let _ = answer.send(stored);
        }
        waiting.may_claim = waiting.worker.is_some();
    }

    /// Settles what is finished and claims what is next, in one transaction.
    fn turn(&self, statements: &mut Statements<'_>, waiting: &mut Waiting) -> rusqlite::Result<()> {
        let finished = std::mem::take(&mut waiting.finished);
        statements.begin()?;
        let seqs: Vec<_> = finished.iter().map(|(_, seq)| *seq).collect();
        statements.settle(&seqs)?;
        for (lease, _) in &finished {
            let open = waiting.leases.get_mut(lease).expect("a finished message is of an open lease");
            *open -= 1;
            if *open == 0 {
                waiting.leases.remove(lease);
                statements.end_lease(*lease)?;
            }
        }
        let capacity = waiting.capacity().min(raw::CLAIM_MAX);
        let (lease, claimed) = match capacity {
            0 => (0, Vec::new()),
            limit => statements.claim(limit)?,
        };
        statements.commit()?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.completed.fetch_add(seqs.len() as u64, Ordering::Relaxed);
        waiting.may_claim = capacity > 0 && claimed.len() == capacity;
        let Some(handlers) = &waiting.worker else { return Ok(()) };
        if !claimed.is_empty() {
            waiting.leases.insert(lease, claimed.len());
        }
        for message in claimed {
            handlers.probe.started_payload(&message.payload);
            match handlers.probe.handler {
                None => waiting.finished.push((lease, message.seq)),
                Some(time) => self.handle(handlers, time, lease, message.seq),
            }
        }
        Ok(())
    }

    fn handle(&self, handlers: &Handlers, time: std::time::Duration, lease: i64, seq: i64) {
        let (permits, reports) = (handlers.permits.clone(), self.reports.clone());
        self.runtime.spawn(async move {
            let Ok(_permit) = permits.acquire().await else { return };
            tokio::time::sleep(time).await;
            if let Some(reports) = reports.upgrade() {
                // A thread that ended needs no report.
                let _ = reports.send(Command::Finished(lease, seq)).await;
            }
        });
    }
}

fn take(command: Command, waiting: &mut Waiting) {
    match command {
        Command::Accept(messages, answer) => {
            waiting.messages += messages.len();
            waiting.accepts.push((messages, answer));
        }
        Command::Work(probe, concurrency) => {
            let permits = Arc::new(Semaphore::new(concurrency));
            waiting.worker = Some(Handlers { probe, permits, concurrency });
            waiting.may_claim = true;
        }
        Command::Finished(lease, seq) => waiting.finished.push((lease, seq)),
        Command::Rest(stopped) => {
            waiting.worker = None;
            waiting.may_claim = false;
            // Who asked may have gone.
            let _ = stopped.send(());
        }
    }
}
