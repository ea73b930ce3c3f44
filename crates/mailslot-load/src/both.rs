//! Both at once: callers accept as fast as they can while workers execute. The rate is that of the slower side.

use crate::accept::{Callers, Load, watch};
use crate::contender::{Contender, Worker};
use crate::meter::{Meter, Sample, ServerGauge, float};
use crate::running::Running;
use anyhow::ensure;
use std::sync::Arc;
use std::time::Duration;

/// How long the first message of a window may take, on a machine that is busy with other things.
const FIRST_MAX: Duration = Duration::from_secs(10);

/// Runs both sides for a span.
///
/// # Errors
/// A call failed, or nothing was accepted or executed.
pub async fn both(
    worker: Arc<dyn Worker>,
    load: Load,
    server: Option<&dyn ServerGauge>,
) -> anyhow::Result<Sample> {
    let running = Running::start(&worker);
    let contender: Arc<dyn Contender> = worker.clone();
    let callers = Callers::start(&contender, load);
    tokio::time::sleep(load.span.warm_up).await;
    worker.record(true);
    let meter = Meter::start(&*worker, server).await?;
    let (accepted_before, executed_before) = (callers.measure(), worker.completed());
    let moved = || (callers.done() - accepted_before, worker.completed() - executed_before);
    let rates = watch(load.span.measured, || worker.completed()).await;
    while matches!(moved(), (0, _) | (_, 0)) && meter.elapsed() < FIRST_MAX {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (accepted, executed) = moved();
    let done = accepted.min(executed);
    let sample = meter.stop(&*worker, server, done).await?;
    worker.record(false);
    let calls = callers.stop().await?;
    running.stop().await?;
    ensure!(done > 0, "{executed} messages were executed beside {accepted} that were accepted");
    let behind = Some(float(accepted) / float(executed));
    Ok(Sample { calls: Some(calls), starts: Some(worker.starts()), rates, behind, ..sample })
}
