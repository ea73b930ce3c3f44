//! The worker: claims messages, runs their handlers, settles.
//!
//! Who owns what: the turn loop (`turn`) owns claims and settlements and talks to the store alone; executors
//! (`execute`) have messages handled and talk to the turn loop by messages; the heartbeat thread (`heartbeat`) extends leases
//! and tells handlers to stop; they share only the register of what is in flight (`in_flight`).

mod backlog;
mod control;
mod execute;
mod heartbeat;
mod in_flight;
mod pace;
mod turn;

pub(crate) use control::Control;
pub use control::{ControlError, WorkerControl, WorkerState};

use crate::inbox::{Engine, RunError};
use crate::maintenance;
use backlog::Backlog;
use execute::{Executor, Finished};
use heartbeat::Heartbeat;
use in_flight::InFlight;
use mailslot_core::Owner;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turn::TurnLoop;

/// Works until `shutdown` is ready, then stops in order: no more claims, what never started is given back, running
/// handlers get their grace time, what they decided is settled, and only then the heartbeats end.
pub(crate) async fn run(
    engine: Arc<Engine>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    if engine.routes.is_empty() {
        return Err(RunError::NoHandlers);
    }
    let _running = engine.control.start().ok_or(RunError::AlreadyRunning)?;
    let label = engine.worker.label.clone().unwrap_or_else(|| format!("process {}", std::process::id()));
    let owner = Owner::new(label).map_err(RunError::Field)?;
    let in_flight = Arc::new(InFlight::default());
    let heartbeat = Heartbeat::start(engine.clone(), in_flight.clone()).map_err(RunError::Thread)?;
    let stop_maintenance = CancellationToken::new();
    let maintenance = maintenance::spawn(&engine, &stop_maintenance);

    let backlog = Arc::new(Backlog::default());
    let abort = watch::Sender::new(false);
    let (finished_sender, finished) = mpsc::unbounded_channel();
    let executors = spawn_executors(&engine, &backlog, &abort, &finished_sender);
    drop(finished_sender);
    TurnLoop::new(engine, owner, in_flight, backlog.clone(), finished, abort).run(shutdown).await;
    backlog.close();
    executors.join_all().await;
    stop_maintenance.cancel();
    maintenance.join_all().await;
    heartbeat.stop().await;
    Ok(())
}

fn spawn_executors(
    engine: &Arc<Engine>,
    backlog: &Arc<Backlog>,
    abort: &watch::Sender<bool>,
    finished: &mpsc::UnboundedSender<Finished>,
) -> JoinSet<()> {
    let mut executors = JoinSet::new();
    for _ in 0..engine.worker.concurrency {
        let executor = Executor::new(engine.clone(), backlog.clone(), abort.subscribe(), finished.clone());
        executors.spawn(executor.run());
    }
    executors
}
