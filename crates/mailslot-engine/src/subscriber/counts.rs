//! What a subscriber has seen.

use tokio::sync::watch;

/// What a subscriber did since it was built. Each delivery is counted before it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SubscriberCounts {
    /// Deliveries that came, redeliveries included.
    pub received: u64,
    /// Deliveries whose handler succeeded on the spot.
    pub handled: u64,
    /// Redeliveries of what was handled before: skipped.
    pub duplicates: u64,
    /// Redeliveries of what was stored before and is decided there: left to it.
    pub known: u64,
    /// Deliveries that were stored because their session waits.
    pub parked: u64,
    /// Deliveries that were stored for a worker: those of a session on a broker that keeps no sessions, those that are due
    /// later, and those that came back too often.
    pub deferred: u64,
    /// Deliveries whose handler failed and that are stored, to be tried again.
    pub retried: u64,
    /// Deliveries whose handler gave up: stored as dead letters.
    pub dead_lettered: u64,
    /// Deliveries that their handler chose to skip.
    pub skipped: u64,
    /// Deliveries whose handler started work elsewhere.
    pub suspended: u64,
    /// Deliveries of contracts without a handler: stored as dead letters.
    pub unsupported: u64,
    /// Deliveries that are no message: dead letters of the broker, or stored as such.
    pub unreadable: u64,
    /// Deliveries that went back to the broker.
    pub returned: u64,
    /// Deliveries without a usable id, which are handled and cannot be recognised.
    pub unrecognisable: u64,
    /// Heartbeats that were answered.
    pub heartbeats: u64,
    /// Calls of the store that failed.
    pub store_errors: u64,
    /// Calls of the broker that failed.
    pub broker_errors: u64,
    /// Records that the cleanup deleted.
    pub purged: u64,
}

/// How a subscriber stands towards its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubscriberState {
    /// It does not run.
    #[default]
    Stopped,
    /// It receives.
    Receiving,
    /// The broker is away; it tries to connect again.
    Reconnecting,
    /// The store is away, or the circuit is open: it leaves deliveries to the broker for now.
    Holding,
}

/// The one place where they change.
#[derive(Debug)]
pub(super) struct Counters {
    counts: watch::Sender<SubscriberCounts>,
    state: watch::Sender<SubscriberState>,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self { counts: watch::Sender::default(), state: watch::Sender::default() }
    }

    pub(super) fn add(&self, change: impl FnOnce(&mut SubscriberCounts)) {
        self.counts.send_modify(change);
    }

    pub(super) fn counts(&self) -> watch::Receiver<SubscriberCounts> {
        self.counts.subscribe()
    }

    pub(super) fn is(&self, state: SubscriberState) {
        self.state.send_if_modified(|now| std::mem::replace(now, state) != state);
    }

    pub(super) fn state(&self) -> watch::Receiver<SubscriberState> {
        self.state.subscribe()
    }
}
