//! Those who follow what happens to messages: observers, for which nothing waits, and sinks, which hear of an outcome before
//! it is settled. None of them can change it.

mod event;
mod observe;
mod sink;

pub use event::{EventKind, Lifecycle, OutcomeEvent, Subject};
pub use observe::Observer;
pub use sink::{OutcomeSink, PublishingSink, TracingSink};

use crate::stats::StatsSender;
use futures_util::future::join_all;
use mailslot_core::EndpointName;
use mailslot_core::breaker::Circuit;
use observe::Watching;
use std::fmt;
use std::sync::Arc;

/// Everyone who follows one inbox.
pub(crate) struct Followers {
    observers: Vec<Watching>,
    sinks: Vec<Arc<dyn OutcomeSink>>,
    stats: StatsSender,
}

impl fmt::Debug for Followers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followers").finish_non_exhaustive()
    }
}

impl Followers {
    pub(crate) fn new(
        observers: Vec<Arc<dyn Observer>>,
        sinks: Vec<Arc<dyn OutcomeSink>>,
        stats: StatsSender,
    ) -> Self {
        Self { observers: observers.into_iter().map(Watching::new).collect(), sinks, stats }
    }

    /// Whether nobody has to be told anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.observers.is_empty() && self.sinks.is_empty()
    }

    /// A message is about to be handled or recognised.
    pub(crate) fn received(&self, event: impl FnOnce() -> OutcomeEvent) {
        if !self.observers.is_empty() {
            self.notice(&Lifecycle::Received(Arc::new(event())));
        }
    }

    /// Tells what becomes of a message, and waits for the sinks.
    pub(crate) async fn ended(&self, event: OutcomeEvent) {
        let event = Arc::new(event);
        let told = join_all(self.sinks.iter().map(|sink| sink::tell(sink.as_ref(), &event))).await;
        let failed = told.into_iter().filter(|told| !told).count() as u64;
        if failed > 0 {
            self.stats.add(|stats| stats.sinks_failed += failed);
        }
        self.notice(&Lifecycle::Ended(event));
    }

    /// The circuit has changed.
    pub(crate) fn circuit(&self, endpoint: &EndpointName, circuit: Circuit) {
        self.notice(&Lifecycle::Circuit { endpoint: endpoint.clone(), circuit });
    }

    fn notice(&self, event: &Lifecycle) {
        let dropped = self.observers.iter().filter(|observer| !observer.tell(event.clone())).count() as u64;
        if dropped > 0 {
            self.stats.add(|stats| stats.notices_dropped += dropped);
        }
    }
}
