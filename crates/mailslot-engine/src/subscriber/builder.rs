//! The builder of a subscriber: every misuse fails here, with the fix in the message.

use super::calls::Calls;
use super::counts::Counters;
use super::pause::Pause;
use super::{Core, IdentifyBy, Safety, Subscriber};
use crate::builder::{BuildError, InboxBuilder};
use crate::config::within;
use crate::dedup::Cleanup;
use crate::store::Store;
use mailslot_core::broker::{Mapping, NativeMapping, Publisher, Receiver};
use mailslot_core::limits::{LEASE_MAX, LEASE_MIN};
use mailslot_core::{FieldError, LedgerStore};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Most deliveries that one process holds: beyond it, start more processes.
const HOLD_MAX: usize = 100_000;

/// Puts a [`Subscriber`] together: an inbox that is also fed by a broker.
#[must_use = "a builder does nothing until `build`"]
pub struct SubscriberBuilder<S> {
    inbox: InboxBuilder<S>,
    receiver: Arc<dyn Receiver>,
    mapping: Arc<dyn Mapping>,
    answers: Option<Arc<dyn Publisher>>,
    deduplication: Option<Deduplication>,
    settings: Settings,
    safety: Safety,
    stores_all: bool,
}

/// How many deliveries are where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) concurrency: usize,
    pub(super) receive_max: usize,
    pub(super) hold: usize,
    pub(super) extend_every: Duration,
}

impl<S> fmt::Debug for SubscriberBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriberBuilder").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

impl<S: Store + LedgerStore + Clone> SubscriberBuilder<S> {
    pub(crate) fn new(inbox: InboxBuilder<S>, receiver: Arc<dyn Receiver>) -> Self {
        Self {
            inbox,
            receiver,
            mapping: Arc::new(NativeMapping::new()),
            answers: None,
            deduplication: None,
            settings: Settings {
                concurrency: 16,
                receive_max: 100,
                hold: 400,
                extend_every: Duration::from_secs(10),
            },
            safety: Safety::new(),
            stores_all: false,
        }
    }

    /// Recognises redeliveries of what was handled on this endpoint, and skips them. Without it no delivery is looked up or
    /// recorded, and nothing is cleaned up.
    pub fn dedup(mut self, deduplication: Deduplication) -> Self {
        self.deduplication = Some(deduplication);
        self
    }

    /// How deliveries are read. By default as [`NativeMapping`] does.
    pub fn mapping(mut self, mapping: impl Mapping) -> Self {
        self.mapping = Arc::new(mapping);
        self
    }

    /// Answers heartbeats that name where to. Without it they are only counted.
    pub fn answer_by(mut self, publisher: impl Publisher) -> Self {
        self.answers = Some(Arc::new(publisher));
        self
    }

    /// What a publisher may decide, and what is taken at all.
    pub fn safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    /// Stores every delivery instead of handling it on the spot: a stored ingress. Workers handle it, of this process or of
    /// any other; without a handler this process only takes in. It needs [`dedup`](Self::dedup), so that a delivery whose
    /// acknowledgement got lost is not stored twice.
    pub fn stored(mut self) -> Self {
        self.stores_all = true;
        self
    }

    /// How many handlers run at once for deliveries, one of each session. Default 16. The stored messages of the endpoint
    /// have [handlers of their own](InboxBuilder::concurrency).
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.settings.concurrency = handlers;
        self
    }

    /// How many deliveries are asked for at once. Default 100. How many the broker sends ahead is a setting of its receiver.
    pub fn receive_max(mut self, deliveries: usize) -> Self {
        self.settings.receive_max = deliveries;
        self
    }

    /// How many deliveries this process holds in all, those included that wait for a handler or behind another of their
    /// session. Default 400.
    pub fn hold(mut self, deliveries: usize) -> Self {
        self.settings.hold = deliveries;
        self
    }

    /// How often the broker is told that a delivery is still being handled, where it wants to know. Default 10 s.
    pub fn extend_every(mut self, interval: Duration) -> Self {
        self.settings.extend_every = interval;
        self
    }

    /// Checks everything and makes the subscriber.
    ///
    /// # Errors
    /// The first misuse: what [`InboxBuilder::build`] refuses, no handler, a setting out of bounds.
    pub fn build(self) -> Result<Subscriber<S>, BuildError> {
        let Self { inbox, receiver, mapping, answers, deduplication, settings, safety, stores_all } = self;
        settings.check()?;
        safety.check()?;
        let ledger: Arc<dyn LedgerStore> = Arc::new(inbox.store.clone());
        let inbox = inbox.build()?;
        let engine = inbox.engine();
        if engine.routes.is_empty() && !stores_all {
            let fix = "add one with `.handler(…)` before `.subscribe(…)`";
            return Err(FieldError::new("handler", "is missing: the subscriber has none", fix).into());
        }
        if stores_all && deduplication.is_none() {
            let fix =
                "add `.dedup(Deduplication::new())`: a lost acknowledgement makes the broker deliver again";
            return Err(
                FieldError::new("dedup", "is missing, and every delivery is to be stored", fix).into()
            );
        }
        if safety.identify_by == IdentifyBy::DeliveryId && !receiver.capabilities().stable_delivery_id {
            let fix = "identify deliveries by `IdentifyBy::MessageId`";
            return Err(
                FieldError::new("safety.identify_by", "names what this broker does not keep", fix).into()
            );
        }
        let cleanup = deduplication.as_ref().map(|one| one.cleanup(engine.endpoint.clone()));
        cleanup.as_ref().map_or(Ok(()), Cleanup::check)?;
        deduplication.as_ref().map_or(Ok(()), Deduplication::check)?;
        let at_once = engine.store.capabilities().appends_at_once;
        let core = Core {
            calls: Calls::new(Arc::clone(&ledger), Arc::clone(&receiver), at_once),
            engine,
            ledger,
            receiver,
            mapping,
            answers,
            deduplication,
            cleanup,
            settings,
            safety,
            stores_all,
            counters: Counters::new(),
            pause: Pause::default(),
            running: AtomicBool::new(false),
        };
        Ok(Subscriber { inbox, core: Arc::new(core) })
    }
}

impl Settings {
    fn check(&self) -> Result<(), FieldError> {
        within("subscriber.concurrency", self.concurrency, 1, HOLD_MAX)?;
        within("subscriber.receive_max", self.receive_max, 1, HOLD_MAX)?;
        within("subscriber.hold", self.hold, self.concurrency, HOLD_MAX)?;
        within("subscriber.extend_every", self.extend_every, Duration::from_millis(10), LEASE_MAX)
    }
}

/// How redeliveries are recognised.
///
/// The record of a delivery is written after its handler has succeeded and before the broker is told. A handler can therefore
/// run twice: if the process dies in between, and if two copies arrive in two processes at the same time. [`claim`] closes
/// the second window, and a handler that writes in the store's own transaction (`SqliteTx`, `PostgresTx`) closes both for
/// what it writes there.
///
/// [`claim`]: Deduplication::claim
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "give it to `SubscriberBuilder::dedup`"]
pub struct Deduplication {
    pub(super) retention: Duration,
    pub(super) cleanup_every: Duration,
    pub(super) claim: Option<Duration>,
    pub(super) keep_history: bool,
    pub(super) allow_stale_reads: bool,
}

impl Default for Deduplication {
    fn default() -> Self {
        Self::new()
    }
}

impl Deduplication {
    /// Records are kept for 7 days and cleaned up every hour.
    pub fn new() -> Self {
        let hour = Duration::from_secs(3600);
        Self {
            retention: 7 * 24 * hour,
            cleanup_every: hour,
            claim: None,
            keep_history: false,
            allow_stale_reads: false,
        }
    }

    /// For how long records are kept. Make it longer than the broker may take to deliver again and people to replay: a
    /// delivery whose record is gone is handled as a new one.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// How often old records are deleted, the first time at start.
    pub fn cleanup_every(mut self, interval: Duration) -> Self {
        self.cleanup_every = interval;
        self
    }

    /// Lets only one process at a time handle a delivery: it is claimed before its handler runs, for so long, and again and
    /// again while it runs. One more call to the store for each delivery.
    pub fn claim(mut self, lease: Duration) -> Self {
        self.claim = Some(lease);
        self
    }

    /// Keeps deliveries that were handled on the spot as completed messages, with their content, so that operators find each
    /// event that ever came. Without it only those are stored that had to wait or failed. What a handler does in the store's
    /// transaction leaves a record only.
    pub fn keep_history(mut self) -> Self {
        self.keep_history = true;
        self
    }

    /// Starts also on a store whose look-ups may miss what another process has just recorded: for a single process, or where
    /// a second run is harmless.
    pub fn allow_stale_reads(mut self) -> Self {
        self.allow_stale_reads = true;
        self
    }

    fn check(&self) -> Result<(), FieldError> {
        self.claim.map_or(Ok(()), |claim| within("dedup.claim", claim, LEASE_MIN, LEASE_MAX))
    }

    fn cleanup(&self, endpoint: mailslot_core::EndpointName) -> Cleanup {
        Cleanup { retention: self.retention, every: self.cleanup_every, ..Cleanup::of(endpoint) }
    }
}
