//! From the call of accept to the start of the handler, at a given rate.

use crate::contender::Worker;
use crate::latencies::{Latencies, latencies, record};
use crate::meter::{Meter, Sample, ServerGauge, Span, float};
use crate::running::Running;
use anyhow::ensure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often an accept of the load is due to start: the runtime's timer has no finer grain.
const TICK: Duration = Duration::from_millis(1);

/// How long the last messages may take, on a machine that is busy with other things.
const LAST_MAX: Duration = Duration::from_secs(20);

/// Accepts `rate` messages a second beside a worker.
///
/// # Errors
/// A call or the worker failed, or messages were left behind.
pub async fn latency(
    worker: Arc<dyn Worker>,
    rate: f64,
    span: Span,
    server: Option<&dyn ServerGauge>,
) -> anyhow::Result<Sample> {
    let running = Running::start(&worker);
    let warmed = pace(&worker, rate, span.warm_up).await?;
    // What was sent to warm up counts for nothing, however late it is.
    wait_for(&*worker, warmed.len()).await?;
    worker.record(true);
    let meter = Meter::start(&*worker, server).await?;
    let sent = pace(&worker, rate, span.measured).await?;
    let sample = meter.stop(&*worker, server, sent.len()).await?;
    // The last ones count too: leaving them out would leave out the slowest.
    wait_for(&*worker, warmed.len() + sent.len()).await?;
    running.stop().await?;
    worker.record(false);
    Ok(Sample { calls: Some(sent), starts: Some(worker.starts()), ..sample })
}

async fn wait_for(worker: &dyn Worker, completed: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    while worker.completed() < completed && begun.elapsed() < LAST_MAX {
        tokio::time::sleep(TICK).await;
    }
    ensure!(worker.completed() >= completed, "{} of {completed} messages are done", worker.completed());
    Ok(())
}

/// Starts accepts at a rate, evenly but for some jitter, for a time; returns how long each took.
async fn pace(worker: &Arc<dyn Worker>, rate: f64, time: Duration) -> anyhow::Result<Latencies> {
    let (begun, mut sent, mut accepts) = (Instant::now(), 0, JoinSet::new());
    while begun.elapsed() < time || sent == 0 {
        while float(sent) + jitter(sent) < rate * begun.elapsed().as_secs_f64() {
            let worker = worker.clone();
            accepts.spawn(async move {
                let since = Instant::now();
                worker.accept(true).await.map(|()| since.elapsed())
            });
            sent += 1;
        }
        tokio::time::sleep(TICK).await;
    }
    let mut took = latencies();
    while let Some(accepted) = accepts.join_next().await {
        record(&mut took, accepted??);
    }
    Ok(took)
}

/// From 0 to 0.5, without a visible pattern and the same in each run: by the golden ratio.
fn jitter(place: u64) -> f64 {
    (float(place) * 0.618_034).fract() / 2.0
}
