//! Counters of one process since its start.

use tokio::sync::watch;

/// What a process did since its start. Read it with [`Inbox::stats`](crate::Inbox::stats), or await a change with
/// [`Inbox::watch`](crate::Inbox::watch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Messages stored.
    pub accepted: u64,
    /// Accepts that found the first message.
    pub duplicates: u64,
    /// Accepts that were refused: conflicts and full sessions.
    pub refused_accepts: u64,
    /// Messages claimed.
    pub leased: u64,
    /// Handlers started.
    pub started: u64,
    /// Messages completed.
    pub completed: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Messages dead-lettered, those included that were refused at lease.
    pub dead_lettered: u64,
    /// Messages skipped.
    pub skipped: u64,
    /// Messages suspended.
    pub suspended: u64,
    /// Messages that ended as cancelled.
    pub cancelled: u64,
    /// Messages given back unfinished.
    pub released: u64,
    /// Settlements that were refused because the lease was gone.
    pub lease_lost: u64,
    /// Heartbeats that reached the store.
    pub heartbeats: u64,
    /// Heartbeats that failed.
    pub heartbeats_failed: u64,
    /// Claims and settlements that failed and were repeated.
    pub store_errors: u64,
    /// Messages that recovery brought back after their lease ran out.
    pub recovered: u64,
    /// Messages that retention deleted.
    pub deleted: u64,
    /// Hooks that failed.
    pub hooks_failed: u64,
    /// Outcomes that a sink did not take.
    pub sinks_failed: u64,
    /// Notices that an observer missed because its queue was full.
    pub notices_dropped: u64,
}

/// The one place where counters change.
#[derive(Debug, Clone)]
pub(crate) struct StatsSender(watch::Sender<Stats>);

impl StatsSender {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Stats::default()))
    }

    pub(crate) fn add(&self, change: impl FnOnce(&mut Stats)) {
        self.0.send_modify(change);
    }

    pub(crate) fn get(&self) -> Stats {
        *self.0.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Stats> {
        self.0.subscribe()
    }
}
