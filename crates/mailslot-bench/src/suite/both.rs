//! Both at once: callers accept as fast as they can while one worker executes. The rate is that of the slower side.

use super::{Place, Subject, interleave};
use crate::contender::{self, Kind, Setup};
use crate::measure::{Sample, closed_loop};
use crate::options::{Durability, Options, Span, Suite};
use crate::report::{Better, Report};
use anyhow::ensure;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

const CALLERS: [usize; 2] = [64, 256];
const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// Handlers at once.
const CONCURRENCY: usize = 64;

pub(super) async fn run(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let samples = options.stores().len() * CALLERS.len() * KINDS.len() * options.repetitions();
    let span = options.span(Suite::Both, samples);
    for durability in options.stores() {
        for callers in CALLERS {
            let case = format!("{callers} callers, one worker");
            let subject = Subject { suite: Suite::Both, durability, case, better: Better::Rate };
            let sample = async |kind| self::sample(options, durability, callers, kind, span).await;
            interleave(options, report, subject, &KINDS, sample).await?;
        }
    }
    Ok(())
}

/// Runs both sides for a span. Durations are those from accept to start.
pub(super) async fn sample(
    options: &Options,
    durability: Durability,
    callers: usize,
    kind: Kind,
    span: Span,
) -> anyhow::Result<Sample> {
    let place = Place::new(options)?;
    let setup = Setup { concurrency: CONCURRENCY, ..place.setup(durability) };
    let worker = contender::open_worker(kind, &setup).await?;
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run(stopped).await }
    });
    worker.probe().record(true);
    // Reading the commits marks the begin and the end of the window, so the completions are read there as well.
    let (first, last) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
    let window = || {
        let completed = worker.completed();
        first.fetch_min(completed, Ordering::Relaxed);
        last.fetch_max(completed, Ordering::Relaxed);
        worker.commits()
    };
    let enough = || worker.completed() > first.load(Ordering::Relaxed);
    let target = worker.clone();
    let call = move || {
        let target = Arc::clone(&target);
        async move { target.accept(true).await }
    };
    let accepted = closed_loop(callers, 1, span, window, enough, call).await?;
    worker.probe().record(false);
    // A worker that failed may not listen.
    let _ = stop.send(());
    running.await??;
    let executed = last.into_inner().saturating_sub(first.into_inner());
    ensure!(executed > 0, "{} executed nothing beside {callers} callers", kind.name());
    Ok(slower(accepted, executed).with(worker.probe().take()))
}

/// The figures of a window in which `executed` messages were executed beside those that were accepted.
fn slower(accepted: Sample, executed: u64) -> Sample {
    let done = executed.min(accepted.messages);
    let part = crate::measure::float(done) / crate::measure::float(accepted.messages.max(1));
    Sample {
        messages: done,
        per_second: accepted.per_second * part,
        cpu_us: accepted.cpu_us / part.max(1e-9),
        per_commit: accepted.per_commit.map(|per_commit| per_commit * part),
        latencies: None,
    }
}
