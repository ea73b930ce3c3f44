//! The report: rows, as a table, as JSON and as a plot.

mod aims;
mod machine;
mod plot;
mod table;

use crate::contender::Kind;
use crate::options::{Durability, Options, Suite};
use crate::peers::Listed;
use crate::server::Facts;
use aims::Aim;
use anyhow::Context as _;
use machine::Machine;
use mailslot_load::{Latencies, Sample, float};
use serde::Serialize;
use std::io::Write;

/// All that a run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    server: Option<Facts>,
    repetitions: usize,
    /// A smoke run, whose numbers mean nothing.
    quick: bool,
    rows: Vec<Row>,
    aims: Vec<Aim>,
    peers: Vec<Listed>,
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
    /// In what it differs from others of its kind.
    variant: Option<String>,
    messages: u64,
    per_second: f64,
    /// CPU time of the program, and of the server where it is another one and its processes can be seen.
    cpu_us: f64,
    server_cpu_us: Option<f64>,
    /// Bytes of the server's log for each message.
    wal_bytes: Option<f64>,
    /// From accept to start where messages are executed, of the call otherwise.
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    /// Of the call of accept, where messages are executed too.
    accept_p50_ms: Option<f64>,
    accept_p99_ms: Option<f64>,
    per_commit: Option<f64>,
    /// Messages accepted for each that was executed; above 1 the backlog grew.
    behind: Option<f64>,
    /// Accepts that were refused and repeated, because messages waited too long already.
    refused: u64,
    /// Messages in each second of the last sample, if it had several.
    rates: Vec<f64>,
    /// How ours compares with this: above 1, ours is better. 1 for ours.
    ratio: f64,
    /// The same for CPU time, the server's included. It holds where others use the machine as well, which disturbs
    /// rates.
    cpu_ratio: f64,
}

impl Measured {
    pub(crate) fn of(kind: Kind, variant: Option<String>, sample: &Sample) -> Self {
        let at = |latencies: Option<&Latencies>, quantile: f64| {
            let latencies = latencies.filter(|latencies| !latencies.is_empty())?;
            Some(float(latencies.value_at_quantile(quantile)) / 1e3)
        };
        let (starts, calls) = (sample.starts.as_ref(), sample.calls.as_ref());
        let main = starts.or(calls);
        let beside = starts.and(calls);
        Self {
            kind,
            variant,
            messages: sample.messages,
            per_second: sample.per_second,
            cpu_us: sample.cpu_us,
            server_cpu_us: sample.server_cpu_us,
            wal_bytes: sample.wal_bytes,
            p50_ms: at(main, 0.5),
            p99_ms: at(main, 0.99),
            max_ms: at(main, 1.0),
            accept_p50_ms: at(beside, 0.5),
            accept_p99_ms: at(beside, 0.99),
            per_commit: sample.per_commit,
            behind: sample.behind,
            refused: sample.refused,
            rates: sample.rates.clone(),
            ratio: 1.0,
            cpu_ratio: 1.0,
        }
    }

    /// Who it is.
    fn name(&self) -> String {
        match &self.variant {
            Some(peer) if self.kind == Kind::Peer => peer.clone(),
            None => self.kind.name().to_owned(),
            Some(variant) => format!("{}, {variant}", self.kind.name()),
        }
    }

    /// CPU time of program and server together.
    fn all_cpu_us(&self) -> f64 {
        self.cpu_us + self.server_cpu_us.unwrap_or_default()
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
            other.cpu_ratio = other.all_cpu_us() / ours.all_cpu_us();
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
            server: None,
            repetitions: options.repetitions(),
            quick: options.quick,
            rows: Vec::new(),
            aims: Vec::new(),
            peers: Vec::new(),
        }
    }

    /// Says what the server is.
    pub(crate) fn describe(&mut self, server: Facts) {
        self.server = Some(server);
    }

    /// Says which other queues run.
    pub(crate) fn list(&mut self, peers: Vec<Listed>) {
        self.peers = peers;
    }

    /// Says what is measured now; on the error stream, so that the table stays clean.
    pub(crate) fn progress(case: &str) {
        // A closed stream is no reason to stop measuring.
        let _ = writeln!(std::io::stderr(), "{case}");
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Prints and writes all of it.
    pub(crate) fn finish(mut self, options: &Options) -> anyhow::Result<()> {
        self.aims = aims::of(&self);
        table::print(&self, &mut std::io::stdout().lock()).context("failed to print the table")?;
        if let Some(path) = &options.json {
            let json = serde_json::to_vec_pretty(&self)?;
            std::fs::write(path, json).with_context(|| format!("failed to write {}", path.display()))?;
        }
        if let Some(path) = &options.svg {
            plot::draw(&self, path)?;
        }
        Ok(())
    }
}
