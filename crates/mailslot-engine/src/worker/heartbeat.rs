//! Heartbeats: they extend leases on a thread and a runtime of their own, so that no busy handler delays them.

use super::in_flight::InFlight;
use crate::inbox::Engine;
use crate::outage::Outage;
use mailslot_core::store::{ExtendRequest, Extended};
use mailslot_core::{StoreError, StoreErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The running thread.
pub(super) struct Heartbeat {
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

impl Heartbeat {
    pub(super) fn start(engine: Arc<Engine>, in_flight: Arc<InFlight>) -> std::io::Result<Self> {
        let (stop, stop_asked) = oneshot::channel();
        let (stopped_sender, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("mailslot-heartbeat".into()).spawn(move || {
            runtime.block_on(beat_until(stop_asked, &engine, &in_flight));
            let _ = stopped_sender.send(());
        })?;
        Ok(Self { stop, stopped })
    }

    /// Stops the thread and waits for its end.
    pub(super) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.stopped.await;
    }
}

async fn beat_until(mut stop: oneshot::Receiver<()>, engine: &Engine, in_flight: &InFlight) {
    let mut wait = engine.worker.heartbeat;
    let mut outage = Outage::new("heartbeats");
    loop {
        tokio::select! {
            _ = &mut stop => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = match beat(engine, in_flight).await {
            Ok(()) => {
                outage.worked();
                engine.worker.heartbeat
            }
            Err(error) => {
                engine.stats.add(|stats| stats.heartbeats_failed += 1);
                let sooner = retry_wait(engine.worker.heartbeat);
                outage.failed(&error, sooner);
                sooner
            }
        };
        in_flight.expire(Instant::now());
    }
}

/// A failed heartbeat is repeated sooner, while the lease still holds.
fn retry_wait(heartbeat: Duration) -> Duration {
    heartbeat / 4
}

async fn beat(engine: &Engine, in_flight: &InFlight) -> Result<(), StoreError> {
    let leases = in_flight.tokens();
    if leases.is_empty() {
        return Ok(());
    }
    let duration = engine.worker.lease;
    // Counted from before the call, the local end is never later than the store's.
    let deadline = Instant::now() + duration;
    let answers = extend(engine, ExtendRequest { leases: leases.clone(), duration }).await?;
    in_flight.extended(leases.into_iter().zip(answers), deadline);
    engine.stats.add(|stats| stats.heartbeats += 1);
    Ok(())
}

/// A call that hangs must not outlive the lease unnoticed: it counts as failed and the next one is tried.
async fn extend(engine: &Engine, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
    let bound = engine.worker.heartbeat;
    let answer = tokio::time::timeout(bound, engine.store.extend(request)).await;
    answer.unwrap_or_else(|_| {
        let detail = format!("the store gave no answer within {bound:?}; look at its load and its locks");
        Err(StoreError::new(StoreErrorKind::Unavailable, "extend", detail))
    })
}
