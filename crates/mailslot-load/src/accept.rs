//! Accepts in a closed loop: each caller calls as soon as its last call returned.

use crate::contender::Contender;
use crate::latencies::{Latencies, latencies, record};
use crate::meter::{Meter, Sample, ServerGauge, Span};
use anyhow::Context as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Who calls, with what, for how long.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Tasks that call.
    pub callers: usize,
    /// Messages for each call; 1 goes through `accept`.
    pub batch: usize,
    /// Whether each message has a key. Those of a batch have one.
    pub keyed: bool,
    /// For how long.
    pub span: Span,
}

/// How long the first call of a window may take, on a machine that is busy with other things.
const FIRST_CALL_MAX: Duration = Duration::from_secs(10);

const SECOND: Duration = Duration::from_secs(1);

const WARMING_UP: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// Callers accept as fast as they can.
///
/// # Errors
/// A call failed, or none returned within the window.
pub async fn accept(
    contender: Arc<dyn Contender>,
    load: Load,
    server: Option<&dyn ServerGauge>,
) -> anyhow::Result<Sample> {
    let callers = Callers::start(&contender, load);
    tokio::time::sleep(load.span.warm_up).await;
    let meter = Meter::start(&*contender, server).await?;
    let before = callers.measure();
    let rates = watch(load.span.measured, || callers.done()).await;
    while callers.done() == before && meter.elapsed() < FIRST_CALL_MAX {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let calls = callers.done() - before;
    let each = load.batch as u64;
    let sample = meter.stop(&*contender, server, calls * each).await?;
    let calls = callers.stop().await?;
    let rates = rates.into_iter().map(|rate| rate * crate::meter::float(each)).collect();
    Ok(Sample { calls: Some(calls), rates, ..sample })
}

/// Waits for a time, and says how far `count` got in each whole second of it.
pub(crate) async fn watch(time: Duration, count: impl Fn() -> u64) -> Vec<f64> {
    let begun = Instant::now();
    let (mut rates, mut looked, mut counted) = (Vec::new(), begun, count());
    while begun.elapsed() + SECOND <= time {
        tokio::time::sleep(SECOND).await;
        let (now, found) = (Instant::now(), count());
        rates.push(crate::meter::float(found - counted) / (now - looked).as_secs_f64());
        (looked, counted) = (now, found);
    }
    tokio::time::sleep(time.saturating_sub(begun.elapsed())).await;
    if rates.len() < 2 { Vec::new() } else { rates }
}

/// The tasks that call.
pub(crate) struct Callers {
    phase: Arc<AtomicU8>,
    done: Arc<AtomicU64>,
    tasks: JoinSet<anyhow::Result<Latencies>>,
}

impl Callers {
    /// Starts them; what they do is not measured yet.
    pub(crate) fn start(contender: &Arc<dyn Contender>, load: Load) -> Self {
        let (phase, done) = (Arc::new(AtomicU8::new(WARMING_UP)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..load.callers {
            tasks.spawn(call(phase.clone(), done.clone(), contender.clone(), load));
        }
        Self { phase, done, tasks }
    }

    /// From now on it is measured; returns how many calls there were before.
    pub(crate) fn measure(&self) -> u64 {
        let before = self.done();
        self.phase.store(MEASURING, Ordering::Relaxed);
        before
    }

    /// Calls that returned.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends them; returns how long their calls took.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Latencies> {
        self.phase.store(OVER, Ordering::Relaxed);
        let mut all = latencies();
        while let Some(joined) = self.tasks.join_next().await {
            all.add(joined?.context("a call failed")?)?;
        }
        Ok(all)
    }
}

async fn call(
    phase: Arc<AtomicU8>,
    done: Arc<AtomicU64>,
    contender: Arc<dyn Contender>,
    load: Load,
) -> anyhow::Result<Latencies> {
    let mut latencies = latencies();
    loop {
        let began = phase.load(Ordering::Relaxed);
        if began == OVER {
            return Ok(latencies);
        }
        let since = Instant::now();
        match load.batch {
            1 => contender.accept(load.keyed).await?,
            batch => contender.accept_batch(batch).await?,
        }
        if began == MEASURING {
            record(&mut latencies, since.elapsed());
        }
        done.fetch_add(1, Ordering::Relaxed);
        // A call that never waits must not starve the others.
        tokio::task::consume_budget().await;
    }
}
