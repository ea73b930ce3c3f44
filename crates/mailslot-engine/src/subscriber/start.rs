//! Starting and stopping: a subscriber that cannot work says so at once, and not by redeliveries.

use super::intake::Intake;
use super::{Core, SubscriberState};
use crate::inbox::{Inbox, RunError};
use crate::store::Store;
use mailslot_core::broker::BrokerError;
use mailslot_core::store::Question;
use mailslot_core::{DeliveryIdentity, LedgerStore, StoreError};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_util::sync::CancellationToken;

/// A subscriber cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The inbox cannot run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The broker does not hand over the destination.
    #[error("the subscriber cannot receive: {0}")]
    Broker(#[source] BrokerError),
    /// The store cannot be asked.
    #[error("the subscriber cannot use its store: {0}")]
    Store(#[source] StoreError),
    /// The store may not see what another process has recorded.
    #[error(
        "the store `{backend}` may answer a look-up with what is no longer true, so a redelivery could look new: \
         use another store, or allow it with `Deduplication::allow_stale_reads`"
    )]
    StaleReads {
        /// The kind of store.
        backend: &'static str,
    },
    /// This subscriber already runs.
    #[error("the subscriber already runs in this process: build another one, or raise its concurrency")]
    AlreadyRunning,
}

/// Runs until `shutdown` is ready.
pub(super) async fn run<S: Store + LedgerStore + Clone>(
    inbox: &Inbox<S>,
    core: &Arc<Core>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), SubscribeError> {
    let _running = Running::begin(core).ok_or(SubscribeError::AlreadyRunning)?;
    check(core).await?;
    let stop = CancellationToken::new();
    let stop_at_end = stop.clone().drop_guard();
    let watch = async {
        shutdown.await;
        stop.cancel();
    };
    let work = async {
        // Whichever ends first, by a failure to start, ends the other.
        let worker = async {
            if core.engine.routes.is_empty() {
                // Others work on what this process takes in.
                stop.cancelled().await;
                return Ok(());
            }
            let ended = inbox.run(stop.cancelled()).await;
            stop.cancel();
            ended
        };
        let intake = Intake::new(core, &stop).run();
        let (ended, (), ()) = tokio::join!(worker, intake, clean_up(inbox.store(), core, &stop));
        ended
    };
    let mut work = std::pin::pin!(work);
    let ended = tokio::select! {
        ended = &mut work => ended,
        () = watch => work.await,
    };
    drop(stop_at_end);
    Ok(ended?)
}

/// Asks the broker and the store once for what will be asked of them all the time.
async fn check(core: &Core) -> Result<(), SubscribeError> {
    core.receiver.open().await.map_err(SubscribeError::Broker)?;
    let Some(deduplication) = &core.deduplication else {
        return core.engine.store.now().await.map(|_| ()).map_err(SubscribeError::Store);
    };
    let capabilities = core.engine.store.capabilities();
    if !capabilities.reads_latest && !deduplication.allow_stale_reads {
        return Err(SubscribeError::StaleReads { backend: capabilities.backend });
    }
    let identity = DeliveryIdentity::new(&core.engine.endpoint, Some("start of a subscriber")).ok();
    let question = Question { identity, session: None };
    core.ledger.look_up(&[question]).await.map(|_| ()).map_err(SubscribeError::Store)
}

async fn clean_up(store: &(impl LedgerStore + Clone), core: &Core, stop: &CancellationToken) {
    let Some(cleanup) = core.cleanup.clone() else { return };
    let counted = |deleted: usize| core.counters.add(|counts| counts.purged += deleted as u64);
    let cleaned = cleanup.run_counted(store.clone(), stop.cancelled(), counted).await;
    cleaned.expect("the builder has checked it");
}

/// Marks the subscriber as running for as long as it lives.
struct Running<'a>(&'a Core);

impl<'a> Running<'a> {
    fn begin(core: &'a Core) -> Option<Self> {
        // Not `then_some`: one that is dropped ends the other run.
        (!core.running.swap(true, Ordering::AcqRel)).then(|| Self(core))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.counters.is(SubscriberState::Stopped);
        self.0.running.store(false, Ordering::Release);
    }
}
