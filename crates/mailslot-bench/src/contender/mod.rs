//! What is measured: our inbox, and the raw references beside it, behind one trait.

mod counted;
mod inbox;
mod raw;
mod raw_memory;
mod raw_sqlite;
mod raw_sqlx;

pub(crate) use counted::Counted;
pub(crate) use raw::RawMessage;
pub(crate) use raw_memory::{MemoryTables, RawMemory};
pub(crate) use raw_sqlite::{Statements, open as open_tables};

use crate::measure::{Latencies, latencies, record};
use crate::message::{Work, now_ns};
use crate::options::Durability;
use anyhow::Context as _;
use async_trait::async_trait;
use mailslot::AnyStore;
use mailslot::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Something that takes messages as an inbox does.
#[async_trait]
pub(crate) trait Contender: Send + Sync {
    /// Stores one message durably, with a key of its own or without.
    async fn accept(&self, keyed: bool) -> anyhow::Result<()>;

    /// Stores keyed messages together.
    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()>;

    /// Write transactions so far.
    fn commits(&self) -> u64;
}

/// A contender that also executes.
#[async_trait]
pub(crate) trait Worker: Contender {
    /// Executes until told to stop.
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()>;

    /// Messages that are settled so far.
    fn completed(&self) -> u64;

    /// What handlers saw.
    fn probe(&self) -> &Probe;
}

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Kind {
    /// The inbox.
    #[serde(rename = "mailslot")]
    Mailslot,
    /// The fastest raw form: plain prepared statements on one thread, coalesced as ours; for memory a lock around maps.
    #[serde(rename = "raw")]
    Raw,
    /// The same through sqlx, which has a thread of its own behind each connection.
    #[serde(rename = "raw sqlx")]
    RawSqlx,
    /// One transaction for each message.
    #[serde(rename = "raw one by one")]
    OneByOne,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mailslot => "mailslot",
            Self::Raw => "raw",
            Self::RawSqlx => "raw sqlx",
            Self::OneByOne => "raw one by one",
        }
    }
}

/// How a contender is opened.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) durability: Durability,
    /// The file, unless it is memory.
    pub(crate) path: PathBuf,
    pub(crate) concurrency: usize,
    /// How long a handler waits; not at all by default.
    pub(crate) handler: Option<Duration>,
}

/// Opens a contender.
pub(crate) async fn open(kind: Kind, setup: &Setup) -> anyhow::Result<Arc<dyn Contender>> {
    Ok(match kind {
        Kind::Mailslot | Kind::Raw => open_worker(kind, setup).await?,
        Kind::RawSqlx => Arc::new(raw_sqlx::RawSqlx::open(setup).await?),
        Kind::OneByOne => Arc::new(raw_sqlite::RawSqlite::open(setup, 1)?),
    })
}

/// Opens a contender that executes.
pub(crate) async fn open_worker(kind: Kind, setup: &Setup) -> anyhow::Result<Arc<dyn Worker>> {
    Ok(match (kind, setup.durability) {
        (Kind::Mailslot, _) => Arc::new(inbox::OurInbox::open(setup).await?),
        (_, Durability::Memory) => Arc::new(RawMemory::open(setup)),
        _ => Arc::new(raw_sqlite::RawSqlite::open(setup, raw::COALESCE_MAX)?),
    })
}

/// Opens our store.
pub(crate) async fn open_store(durability: Durability, path: &Path) -> anyhow::Result<AnyStore> {
    let synchronous = match durability {
        Durability::Memory => return Ok(AnyStore::new(mailslot::MemoryStore::new())),
        Durability::Full => Synchronous::Full,
        Durability::Normal => Synchronous::Normal,
    };
    let options = SqliteOptions::new(path).synchronous(synchronous);
    Ok(AnyStore::new(SqliteStore::open(options).await.context("failed to open the store")?))
}

/// What handlers record, and how long they take.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    recording: Arc<AtomicBool>,
    starts: Arc<Mutex<Latencies>>,
    pub(crate) handler: Option<Duration>,
}

impl Probe {
    pub(crate) fn new(handler: Option<Duration>) -> Self {
        Self { recording: Arc::default(), starts: Arc::new(Mutex::new(latencies())), handler }
    }

    /// Starts or stops to record how long after their accepts handlers start.
    pub(crate) fn record(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
    }

    /// A handler starts with a message that was sent then.
    pub(crate) fn started(&self, sent_ns: u64) {
        if self.recording.load(Ordering::Relaxed) {
            let late = Duration::from_nanos(now_ns().saturating_sub(sent_ns));
            record(&mut self.starts.lock().unwrap_or_else(PoisonError::into_inner), late);
        }
    }

    /// As [`started`](Self::started), for who has only the payload.
    pub(crate) fn started_payload(&self, payload: &[u8]) {
        if self.recording.load(Ordering::Relaxed) {
            self.started(Work::sent_ns_of(payload).unwrap_or_default());
        }
    }

    /// All that was recorded.
    pub(crate) fn take(&self) -> Latencies {
        std::mem::replace(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner), latencies())
    }
}
