//! `mailslot bench`: what this machine and this database can do, measured beside the user's own inbox.

mod measure;
mod scratch;

use crate::args::{Global, duration};
use crate::error::Error;
use crate::output::{Cell, Output, Table};
use crate::progress;
use clap::ValueEnum;
use mailslot_load::{Latencies, Sample, float};
use measure::Plan;
use scratch::{Scratch, Used};
use serde::Serialize;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The messages of the inbox are not touched: on PostgreSQL each measurement has a schema of its own in the same database,
/// for an SQLite file one of its own in the same folder. Both are removed at the end, also after Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure; all of it if nothing is named
    #[arg(value_enum)]
    what: Vec<What>,
    /// How long each measurement takes
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    time: Duration,
    /// How many callers accept at once, beside a single one
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    callers: u16,
    /// How many handlers run at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// How long each handler takes; by default it does nothing
    #[arg(long, value_name = "TIME", value_parser = duration)]
    handler: Option<Duration>,
    /// How many messages wait for `execute`
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    backlog: u32,
}

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Accepts alone: by one caller, and by many at once
    Accept,
    /// A backlog, worked off
    Execute,
    /// Callers accept while a worker executes
    Both,
    /// From the call of accept to the start of the handler, twenty times a second
    Latency,
}

/// One measurement for programs. Durations are milliseconds.
#[derive(Debug, Serialize)]
struct MeasuredView {
    what: String,
    messages: u64,
    per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accept_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accept_p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_p99_ms: Option<f64>,
    /// CPU time of this program for each message, in microseconds.
    cpu_us: f64,
}

impl MeasuredView {
    fn of(what: String, sample: &Sample) -> Self {
        let at = |latencies: &Option<Latencies>, quantile| {
            let latencies = latencies.as_ref().filter(|latencies| !latencies.is_empty())?;
            Some(float(latencies.value_at_quantile(quantile)) / 1e3)
        };
        Self {
            what,
            messages: sample.messages,
            per_second: sample.per_second,
            accept_p50_ms: at(&sample.calls, 0.5),
            accept_p99_ms: at(&sample.calls, 0.99),
            start_p50_ms: at(&sample.starts, 0.5),
            start_p99_ms: at(&sample.starts, 0.99),
            cpu_us: sample.cpu_us,
        }
    }

    fn row(&self) -> Vec<Cell> {
        let ms =
            |figure: Option<f64>| Cell::number(figure.map_or("-".into(), |figure| format!("{figure:.2}")));
        vec![
            self.what.as_str().into(),
            Cell::number(format!("{:.0}", self.per_second)),
            ms(self.accept_p50_ms),
            ms(self.accept_p99_ms),
            ms(self.start_p50_ms),
            ms(self.start_p99_ms),
        ]
    }
}

/// Measures one thing after the other and prints a table.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let mut signals = Signals::listen()?;
    scratch::report_leftovers(&global.store, output).await?;
    let plans = measure::plans(&args);
    let bar = progress::bar(global, Some(plans.len() as u64), "measurements");
    let (mut measured, mut used) = (Vec::with_capacity(plans.len()), Used::Nothing);
    for plan in plans {
        bar.set_message(plan.name());
        let sample = measure_one(&plan, &global.store, &mut signals).await?;
        used = sample.1;
        measured.push(MeasuredView::of(plan.name(), &sample.0));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if output.json {
        return output.document(&measured);
    }
    let headings = ["MEASURED", "PER SECOND", "ACCEPT P50 MS", "P99 MS", "START P50 MS", "P99 MS"];
    let mut table = Table::new(headings);
    for measured in &measured {
        table.row(measured.row());
    }
    output.table(&table, "nothing was measured")?;
    output.note(used.to_string());
    Ok(())
}

/// Measures in a scratch store, and removes it whatever happened.
async fn measure_one(plan: &Plan, url: &str, signals: &mut Signals) -> Result<(Sample, Used), Error> {
    let scratch = Scratch::beside(url)?;
    let used = scratch.used();
    let ended = measure_in(&scratch, plan, signals).await;
    let removed = scratch.remove().await;
    match ended? {
        Ended::Measured(sample) => removed.map(|()| (*sample, used)),
        Ended::Interrupted(signal) => {
            if let Err(error) = removed {
                tracing::error!("{}", error.text());
            }
            // As a shell reports a death by signal.
            std::process::exit(128 + signal.as_raw_value());
        }
    }
}

enum Ended {
    Measured(Box<Sample>),
    Interrupted(SignalKind),
}

async fn measure_in(scratch: &Scratch, plan: &Plan, signals: &mut Signals) -> Result<Ended, Error> {
    // Not given up half-way: what a server was told to make it may make after it was told to drop it.
    let inbox = plan.open(scratch.url()).await?;
    tracing::debug!("measuring {}", plan.name());
    tokio::select! {
        sample = plan.measure(inbox) => Ok(Ended::Measured(Box::new(sample?))),
        signal = signals.next() => Ok(Ended::Interrupted(signal)),
    }
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Error> {
        let failed = |error| Error::unforeseen("failed to listen to signals", error);
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate()).map_err(failed)? })
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        }
    }
}
