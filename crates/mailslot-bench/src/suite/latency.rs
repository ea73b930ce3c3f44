//! From the call of accept to the start of the handler: on an idle inbox, and at half of its load.

use super::{Place, Subject, both, interleave};
use crate::contender::{self, Kind, Worker};
use crate::measure::{Meter, Sample, float};
use crate::options::{Durability, Options, Span, Suite};
use crate::report::{Better, Report};
use anyhow::ensure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// Accepts a second on an idle inbox.
const IDLE: f64 = 20.0;

/// Callers of the sample that finds the full load.
const CALLERS: usize = 64;

/// How often an accept of the load is due to start: the runtime's timer has no finer grain.
const TICK: Duration = Duration::from_millis(1);

/// How long the last messages may take, on a machine that is busy with other things.
const LAST_MAX: Duration = Duration::from_secs(20);

pub(super) async fn run(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let stores = options.stores();
    // One more sample for each store finds its full load.
    let samples = stores.len() * (1 + 2 * KINDS.len() * options.repetitions());
    let span = options.span(Suite::Latency, samples);
    for durability in stores {
        let full = both::sample(options, durability, CALLERS, Kind::Mailslot, span).await?;
        let half = full.per_second / 2.0;
        for (rate, case) in [(IDLE, "idle, 20/s".to_owned()), (half, format!("half load, {half:.0}/s"))] {
            let subject = Subject { suite: Suite::Latency, durability, case, better: Better::Latency };
            let sample = async |kind| self::sample(options, durability, rate, kind, span).await;
            interleave(options, report, subject, &KINDS, sample).await?;
        }
    }
    Ok(())
}

async fn sample(
    options: &Options,
    durability: Durability,
    rate: f64,
    kind: Kind,
    span: Span,
) -> anyhow::Result<Sample> {
    let place = Place::new(options)?;
    let worker = contender::open_worker(kind, &place.setup(durability)).await?;
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run(stopped).await }
    });
    let mut accepts = JoinSet::new();
    let warmed = pace(&worker, rate, span.warm_up, &mut accepts).await;
    worker.probe().record(true);
    let (meter, commits) = (Meter::start(), worker.commits());
    let sent = pace(&worker, rate, span.measured, &mut accepts).await;
    let sample = meter.stop(sent, worker.commits() - commits);
    while let Some(accepted) = accepts.join_next().await {
        accepted??;
    }
    // The last ones count too: leaving them out would leave out the slowest.
    let all_accepted = Instant::now();
    while worker.completed() < warmed + sent && all_accepted.elapsed() < LAST_MAX {
        tokio::time::sleep(TICK).await;
    }
    ensure!(worker.completed() >= warmed + sent, "{} left messages behind", kind.name());
    // A worker that failed may not listen.
    let _ = stop.send(());
    running.await??;
    worker.probe().record(false);
    Ok(sample.with(worker.probe().take()))
}

/// Starts accepts at a rate, evenly but for some jitter, for a time; returns how many.
async fn pace(
    worker: &Arc<dyn Worker>,
    rate: f64,
    time: Duration,
    accepts: &mut JoinSet<anyhow::Result<()>>,
) -> u64 {
    let begun = Instant::now();
    let mut sent = 0;
    while begun.elapsed() < time {
        while float(sent) + jitter(sent) < rate * begun.elapsed().as_secs_f64() {
            let worker = worker.clone();
            accepts.spawn(async move { worker.accept(true).await });
            sent += 1;
        }
        tokio::time::sleep(TICK).await;
    }
    sent
}

/// From 0 to 0.5, without a visible pattern and the same in each run: by the golden ratio.
fn jitter(place: u64) -> f64 {
    (float(place) * 0.618_034).fract() / 2.0
}
