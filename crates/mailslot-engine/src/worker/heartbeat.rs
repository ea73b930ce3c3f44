//! Heartbeats: they extend leases on a thread and a runtime of their own, so that no busy handler delays them.

use super::in_flight::InFlight;
use crate::inbox::Engine;
use mailslot_core::store::ExtendRequest;
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
    loop {
        tokio::select! {
            _ = &mut stop => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = match beat(engine, in_flight).await {
            Ok(()) => engine.worker.heartbeat,
            Err(()) => retry_wait(engine.worker.heartbeat),
        };
        in_flight.expire(Instant::now());
    }
}

/// A failed heartbeat is repeated sooner, while the lease still holds.
fn retry_wait(heartbeat: Duration) -> Duration {
    heartbeat / 4
}

async fn beat(engine: &Engine, in_flight: &InFlight) -> Result<(), ()> {
    let leases = in_flight.tokens();
    if leases.is_empty() {
        return Ok(());
    }
    let duration = engine.worker.lease;
    // Counted from before the call, the local end is never later than the store's.
    let deadline = Instant::now() + duration;
    let request = ExtendRequest { leases: leases.clone(), duration };
    // A call that hangs must not outlive the lease unnoticed: it counts as failed and the next one is tried.
    let answer = tokio::time::timeout(engine.worker.heartbeat, engine.store.extend(request)).await;
    match answer {
        Ok(Ok(answers)) => {
            in_flight.extended(leases.into_iter().zip(answers), deadline);
            engine.stats.add(|stats| stats.heartbeats += 1);
            Ok(())
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, leases = leases.len(), "failed to extend leases; trying again");
            engine.stats.add(|stats| stats.heartbeats_failed += 1);
            Err(())
        }
        Err(_) => {
            tracing::warn!(leases = leases.len(), "failed to extend leases in time; trying again");
            engine.stats.add(|stats| stats.heartbeats_failed += 1);
            Err(())
        }
    }
}
