//! Measuring: a window of time with what was done, what it cost, and how long each call took.

use crate::options::Span;
use anyhow::Context as _;
use hdrhistogram::Histogram;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Durations in microseconds.
pub(crate) type Latencies = Histogram<u64>;

/// An empty record of durations: to a hundredth, up to a minute.
pub(crate) fn latencies() -> Latencies {
    Latencies::new_with_max(60_000_000, 2).expect("the bounds are valid")
}

/// Adds a duration; longer ones than a minute count as one.
pub(crate) fn record(latencies: &mut Latencies, duration: Duration) {
    latencies.saturating_record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1));
}

/// What one sample found.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) messages: u64,
    pub(crate) per_second: f64,
    /// CPU time of this process, microseconds for each message.
    pub(crate) cpu_us: f64,
    pub(crate) latencies: Option<Latencies>,
    /// Messages for each write transaction.
    pub(crate) per_commit: Option<f64>,
}

/// A running window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    since: Instant,
    cpu: Duration,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { since: Instant::now(), cpu: cpu_time() }
    }

    /// For how long it is open.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Closes the window, in which `messages` were handled in `commits` write transactions.
    pub(crate) fn stop(self, messages: u64, commits: u64) -> Sample {
        let (elapsed, cpu) = (self.since.elapsed(), cpu_time().saturating_sub(self.cpu));
        Sample::of(messages, commits, elapsed, cpu)
    }
}

impl Sample {
    pub(crate) fn of(messages: u64, commits: u64, elapsed: Duration, cpu: Duration) -> Self {
        let count = float(messages.max(1));
        Self {
            messages,
            per_second: float(messages) / elapsed.as_secs_f64().max(1e-9),
            cpu_us: cpu.as_secs_f64() * 1e6 / count,
            latencies: None,
            per_commit: (commits > 0).then(|| float(messages) / float(commits)),
        }
    }

    pub(crate) fn with(self, latencies: Latencies) -> Self {
        Self { latencies: Some(latencies), ..self }
    }
}

/// CPU time of this process so far, in all its threads.
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Counts are far below the 53 bits of a float.
#[expect(clippy::cast_precision_loss, reason = "counts of one run")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// How long the first call of a window may take, on a machine that is busy with other things.
const FIRST_CALL_MAX: Duration = Duration::from_secs(10);

const WARMING_UP: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// `callers` tasks that call `call` one after the other, each as soon as its last call returned. A call stands for
/// `messages` messages; `commits` reads the number of write transactions so far. The window is held open, within
/// [`FIRST_CALL_MAX`], until one call returned and there is `enough` else to measure.
///
/// # Errors
/// A call failed, or none returned within the window.
pub(crate) async fn closed_loop<F, Fut>(
    callers: usize,
    messages: u64,
    span: Span,
    commits: impl Fn() -> u64,
    enough: impl Fn() -> bool,
    call: F,
) -> anyhow::Result<Sample>
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let phase = Arc::new(AtomicU8::new(WARMING_UP));
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(caller(phase.clone(), done.clone(), call.clone()));
    }
    tokio::time::sleep(span.warm_up).await;
    let (meter, before, commits_before) = (Meter::start(), done.load(Ordering::Relaxed), commits());
    phase.store(MEASURING, Ordering::Relaxed);
    tokio::time::sleep(span.measured).await;
    while (done.load(Ordering::Relaxed) == before || !enough()) && meter.elapsed() < FIRST_CALL_MAX {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let calls = done.load(Ordering::Relaxed) - before;
    let sample = meter.stop(calls * messages, commits() - commits_before);
    phase.store(OVER, Ordering::Relaxed);
    let mut all = latencies();
    while let Some(joined) = tasks.join_next().await {
        all.add(joined?.context("a call failed")?)?;
    }
    Ok(sample.with(all))
}

async fn caller<F, Fut>(phase: Arc<AtomicU8>, done: Arc<AtomicU64>, call: F) -> anyhow::Result<Latencies>
where
    F: Fn() -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let mut latencies = latencies();
    loop {
        let began = phase.load(Ordering::Relaxed);
        if began == OVER {
            return Ok(latencies);
        }
        let since = Instant::now();
        call().await?;
        if began == MEASURING {
            record(&mut latencies, since.elapsed());
        }
        done.fetch_add(1, Ordering::Relaxed);
        // A call that never waits must not starve the others.
        tokio::task::consume_budget().await;
    }
}
