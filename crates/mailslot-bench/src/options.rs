//! What the command line may ask for.

use clap::{Parser, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Measures Mailslot beside raw references of the same durability, and prints the ratios.
#[derive(Debug, Parser)]
#[command(name = "mailslot-bench")]
pub(crate) struct Options {
    /// What to measure; everything if nothing is named.
    #[arg(value_enum)]
    pub(crate) suites: Vec<Suite>,

    /// On which stores; all of them if none is named.
    #[arg(long = "store", value_enum, value_delimiter = ',')]
    pub(crate) stores: Vec<Durability>,

    /// Only cases whose name has this text in it, such as `256 callers`.
    #[arg(long)]
    pub(crate) case: Option<String>,

    /// How long all samples together may take, in seconds. Opening and filling files comes on top.
    #[arg(long, default_value_t = 110.0)]
    pub(crate) seconds: f64,

    /// How often each case runs, ours and references in turn.
    #[arg(long, default_value_t = 3)]
    pub(crate) repetitions: usize,

    /// Messages in the backlog that the suite `execute` drains.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) backlog: usize,

    /// A smoke run: few and short samples, whose numbers mean nothing.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Where files are made. It must be on a real disk for `full` to mean anything; by default the system's directory
    /// for temporary files.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// Writes the results as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,

    /// Writes a plot of the ratios.
    #[arg(long)]
    pub(crate) svg: Option<PathBuf>,
}

/// A group of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Suite {
    /// Accepts alone.
    Accept,
    /// The store's trait without the engine.
    Store,
    /// A backlog, drained.
    Execute,
    /// From the call of accept to the start of the handler.
    Latency,
    /// Callers accept while one worker executes.
    Both,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// SQLite, `synchronous=FULL`: the log is on disk.
    Full,
    /// SQLite, `synchronous=NORMAL`: the log is with the operating system.
    Normal,
    /// Memory: nothing.
    Memory,
}

impl Suite {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Store => "store",
            Self::Execute => "execute",
            Self::Latency => "latency",
            Self::Both => "both",
        }
    }

    /// Its part of the whole time.
    fn share(self) -> f64 {
        match self {
            Self::Accept => 0.4,
            Self::Store | Self::Latency => 0.1,
            Self::Execute => 0.25,
            Self::Both => 0.15,
        }
    }
}

impl Durability {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "sqlite full",
            Self::Normal => "sqlite normal",
            Self::Memory => "memory",
        }
    }
}

/// How long one sample takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// A quick run: all samples together, in seconds.
const QUICK_SECONDS: f64 = 6.0;

impl Options {
    pub(crate) fn suites(&self) -> Vec<Suite> {
        if self.suites.is_empty() { Suite::value_variants().to_vec() } else { self.suites.clone() }
    }

    pub(crate) fn stores(&self) -> Vec<Durability> {
        if self.stores.is_empty() { Durability::value_variants().to_vec() } else { self.stores.clone() }
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        self.case.as_ref().is_none_or(|wanted| case.contains(wanted.as_str()))
    }

    pub(crate) fn repetitions(&self) -> usize {
        if self.quick { 1 } else { self.repetitions.max(1) }
    }

    pub(crate) fn backlog(&self) -> usize {
        if self.quick { self.backlog.min(3_000) } else { self.backlog }
    }

    /// The span of each of `samples` samples of a suite: a fifth of it warms up.
    pub(crate) fn span(&self, suite: Suite, samples: usize) -> Span {
        let seconds = if self.quick { self.seconds.min(QUICK_SECONDS) } else { self.seconds };
        let shares: f64 = self.suites().into_iter().map(Suite::share).sum();
        let each = seconds.max(0.1) * suite.share() / shares / crate::measure::float(samples.max(1) as u64);
        let each = Duration::from_secs_f64(each.max(0.01));
        Span { warm_up: each / 5, measured: each * 4 / 5 }
    }
}
