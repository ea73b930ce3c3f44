//! The subscriber: an inbox that a broker feeds, and that recognises what it has handled before.
//!
//! A delivery is read (`item`), waits for its turn (`lanes`), and is then looked up, handled and concluded (`deliver`): only
//! after that the broker is told. What has to wait or to be tried again becomes a stored message of the endpoint, which the
//! inbox's own worker handles. The intake (`intake`) owns what is in flight; deliveries share nothing but the calls that are
//! made for many of them together (`calls`).

mod builder;
mod calls;
mod counts;
mod deliver;
mod handle;
mod heartbeat;
mod hold;
mod intake;
mod item;
mod lanes;
mod pause;
mod safety;
mod settling;
mod start;

pub use builder::{Deduplication, SubscriberBuilder};
pub use counts::{SubscriberCounts, SubscriberState};
pub use item::{HEARTBEAT_CONTRACT, REJECTED_CONTRACT};
pub use safety::{DUE_HEADER, DUE_IN_HEADER, IdentifyBy, PRIORITY_HEADER, Safety, TENANT_HEADER};
pub use start::SubscribeError;

use crate::dedup::Cleanup;
use crate::inbox::{Engine, Inbox};
use crate::store::Store;
use builder::Settings;
use calls::Calls;
use counts::Counters;
use mailslot_core::broker::{Mapping, Publisher, Receiver};
use mailslot_core::{DeliveryIdentity, LedgerStore};
use pause::Pause;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::watch;

/// Handles what a broker delivers on one endpoint, and the stored messages of that endpoint. Clones share everything.
#[derive(Clone)]
pub struct Subscriber<S> {
    inbox: Inbox<S>,
    core: Arc<Core>,
}

/// What the parts of a subscriber share.
struct Core {
    engine: Arc<Engine>,
    ledger: Arc<dyn LedgerStore>,
    receiver: Arc<dyn Receiver>,
    mapping: Arc<dyn Mapping>,
    answers: Option<Arc<dyn Publisher>>,
    deduplication: Option<Deduplication>,
    cleanup: Option<Cleanup>,
    settings: Settings,
    safety: Safety,
    /// Whether every delivery is stored, and none handled on the spot.
    stores_all: bool,
    calls: Calls,
    counters: Counters,
    /// After failures of the store.
    pause: Pause,
    running: AtomicBool,
}

impl<S> fmt::Debug for Subscriber<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("endpoint", &self.engine.endpoint)
            .field("deduplication", &self.deduplication)
            .finish_non_exhaustive()
    }
}

impl<S: Store + LedgerStore + Clone> Subscriber<S> {
    /// Receives and works until `shutdown` is ready. Then stops in order: nothing more is received, what did not start goes
    /// back, running handlers get their grace time, and what they decided is settled, which no stop interrupts.
    ///
    /// A broker or a store that goes away while it runs is waited for.
    ///
    /// # Errors
    /// It cannot start: the destination, the store or its schema is not what it has to be.
    ///
    /// # Cancel safety
    /// Dropping the future stops at once; the broker delivers again what was not settled.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), SubscribeError> {
        start::run(&self.inbox, &self.core, shutdown).await
    }
}

impl<S> Subscriber<S> {
    /// The inbox of the endpoint: its stored messages, its operator API, its control.
    pub fn inbox(&self) -> &Inbox<S> {
        &self.inbox
    }

    /// What it did since it was built.
    pub fn counts(&self) -> SubscriberCounts {
        *self.core.counters.counts().borrow()
    }

    /// Follows [`counts`](Self::counts).
    pub fn watch(&self) -> watch::Receiver<SubscriberCounts> {
        self.core.counters.counts()
    }

    /// How it stands towards its broker, now and with each change.
    pub fn state(&self) -> watch::Receiver<SubscriberState> {
        self.core.counters.state()
    }
}

impl Core {
    /// What a delivery is recognised by, if that was asked for and it has a usable id.
    fn identify(&self, message_id: Option<&str>) -> Option<DeliveryIdentity> {
        self.deduplication.as_ref()?;
        match DeliveryIdentity::new(&self.engine.endpoint, message_id) {
            Ok(identity) => Some(identity),
            Err(why) => {
                let mut first = false;
                self.counters.add(|counts| {
                    counts.unrecognisable += 1;
                    first = counts.unrecognisable == 1;
                });
                if first {
                    tracing::warn!(
                        endpoint = %self.engine.endpoint, %why,
                        "a delivery cannot be recognised when it comes again; it is handled all the same, and so are others like it"
                    );
                }
                None
            }
        }
    }
}
