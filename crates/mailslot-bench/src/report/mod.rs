//! The report: rows, as a table, as JSON and as a plot.

mod machine;
mod plot;
mod table;

use crate::contender::Kind;
use crate::measure::Sample;
use crate::options::{Durability, Options, Suite};
use anyhow::Context as _;
use machine::Machine;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// All that a run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    repetitions: usize,
    seconds: f64,
    /// A smoke run, whose numbers mean nothing.
    quick: bool,
    rows: Vec<Row>,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    /// More messages a second are better.
    Rate,
    /// A shorter median duration is better.
    Latency,
}

/// One case: ours and its references.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    suite: Suite,
    store: Durability,
    case: String,
    better: Better,
    measured: Vec<Measured>,
}

/// The medians of one of them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measured {
    kind: Kind,
    messages: u64,
    per_second: f64,
    cpu_us: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    per_commit: Option<f64>,
    /// How ours compares with this: above 1, ours is better. 1 for ours.
    ratio: f64,
    /// The same for CPU time. It holds where others use the machine as well, which disturbs rates.
    cpu_ratio: f64,
}

impl Measured {
    pub(crate) fn of(kind: Kind, sample: &Sample) -> Self {
        let at = |quantile: f64| {
            let latencies = sample.latencies.as_ref().filter(|latencies| !latencies.is_empty())?;
            Some(crate::measure::float(latencies.value_at_quantile(quantile)) / 1e3)
        };
        Self {
            kind,
            messages: sample.messages,
            per_second: sample.per_second,
            cpu_us: sample.cpu_us,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            per_commit: sample.per_commit,
            ratio: 1.0,
            cpu_ratio: 1.0,
        }
    }
}

impl Row {
    /// A row; the first that was measured is ours.
    pub(crate) fn new(
        suite: Suite,
        store: Durability,
        case: String,
        better: Better,
        mut measured: Vec<Measured>,
    ) -> Self {
        let ours = measured.first().cloned();
        for other in measured.iter_mut().skip(1) {
            let Some(ours) = &ours else { break };
            other.cpu_ratio = other.cpu_us / ours.cpu_us;
            other.ratio = match better {
                Better::Rate => ours.per_second / other.per_second,
                Better::Latency => other.p50_ms.unwrap_or(f64::NAN) / ours.p50_ms.unwrap_or(f64::NAN),
            };
        }
        Self { suite, store, case, better, measured }
    }
}

impl Report {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            machine: Machine::here(),
            repetitions: options.repetitions(),
            seconds: options.seconds,
            quick: options.quick,
            rows: Vec::new(),
        }
    }

    /// Says what is measured now; on the error stream, so that the table stays clean.
    pub(crate) fn progress(case: &str) {
        // A closed stream is no reason to stop measuring.
        let _ = writeln!(std::io::stderr(), "{case}");
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> anyhow::Result<()> {
        table::print(self, out).context("failed to print the table")
    }

    pub(crate) fn write_json(&self, path: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_vec_pretty(self)?;
        std::fs::write(path, json).with_context(|| format!("failed to write {}", path.display()))
    }

    pub(crate) fn write_svg(&self, path: &Path) -> anyhow::Result<()> {
        plot::draw(self, path)
    }
}
