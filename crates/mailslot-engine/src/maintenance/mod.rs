//! Keeping house: loops that every process runs beside its worker. Each step is one short transaction that checks what
//! it changes, so any number of processes may run them at once.

mod handoffs;
mod recover;
mod redrive;
mod retain;

use crate::inbox::Engine;
use crate::outage::Outage;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The longest wait after failed passes.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Starts every loop.
pub(crate) fn spawn(engine: &Arc<Engine>, stop: &CancellationToken) -> JoinSet<()> {
    let config = &engine.maintenance;
    let mut loops = JoinSet::new();
    loops.spawn(every(config.recover_every, engine.clone(), stop.clone(), "recover", recover::run_once));
    loops.spawn(every(config.recover_every, engine.clone(), stop.clone(), "handoffs", handoffs::run_once));
    loops.spawn(every(config.redrive_every, engine.clone(), stop.clone(), "redrive", redrive::run_once));
    loops.spawn(every(config.retain_every, engine.clone(), stop.clone(), "retain", retain::run_once));
    loops
}

/// Runs a pass at once and then in every interval, until told to stop; a failed one is logged and waits longer.
async fn every<F, Fut>(
    interval: Duration,
    engine: Arc<Engine>,
    stop: CancellationToken,
    name: &'static str,
    pass: F,
) where
    F: Fn(Arc<Engine>) -> Fut,
    Fut: Future<Output = Result<(), mailslot_core::StoreError>>,
{
    let mut wait = interval;
    let mut outage = Outage::new(name);
    loop {
        let passed = tokio::select! {
            passed = pass(engine.clone()) => passed,
            () = stop.cancelled() => return,
        };
        wait = match passed {
            Ok(()) => {
                outage.worked();
                interval
            }
            Err(error) => {
                let longer = (wait * 2).min(BACKOFF_MAX.max(interval));
                outage.failed(&error, longer);
                longer
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait.mul_f64(0.9 + 0.2 * engine.random.unit())) => {}
            () = stop.cancelled() => return,
        }
    }
}
