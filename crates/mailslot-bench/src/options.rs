//! What the command line may ask for.

use clap::{Parser, ValueEnum};
use mailslot_load::{Span, float};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Measures Mailslot beside raw references of the same durability, and prints the ratios.
#[derive(Debug, Parser)]
#[command(name = "mailslot-bench")]
pub(crate) struct Options {
    /// What to measure; everything that takes minutes and not hours if nothing is named.
    #[arg(value_enum)]
    pub(crate) suites: Vec<Suite>,

    /// On which stores; all of them if none is named.
    #[arg(long = "store", value_enum, value_delimiter = ',')]
    pub(crate) stores: Vec<Durability>,

    /// The PostgreSQL server, as `postgres://user:password@host/database`. Each sample has a schema of its own there,
    /// which is dropped afterwards. Without it a private server is started, if PostgreSQL is installed.
    #[arg(long, env = "MAILSLOT_BENCH_POSTGRES", hide_env_values = true, value_name = "URL")]
    pub(crate) postgres: Option<String>,

    /// Only cases whose name has this text in it, such as `256 callers`.
    #[arg(long)]
    pub(crate) case: Option<String>,

    /// Every case of a suite on PostgreSQL, not only the usual ones.
    #[arg(long)]
    pub(crate) thorough: bool,

    /// How long the samples of all suites but `both` on PostgreSQL take together, in seconds. Opening and filling stores
    /// comes on top.
    #[arg(long, default_value_t = 180.0)]
    pub(crate) total_seconds: f64,

    /// How long each sample of `both` on PostgreSQL takes, in seconds: long enough to see whether it stays flat.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,

    /// How often each case runs, ours and references in turn.
    #[arg(long, default_value_t = 3)]
    pub(crate) repetitions: usize,

    /// Messages in the backlog that `execute` and `processes` drain.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) backlog: usize,

    /// Messages that pass in `snapshot`, while an old snapshot is held.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) passing: usize,

    /// Messages that wait in `backlog`.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) waiting: usize,

    /// Completed messages that are kept in `retained`.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) retained: usize,

    /// A smoke run: few and short samples, whose numbers mean nothing.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Where files are made. It must be on a real disk for `full` to mean anything; by default the system's directory
    /// for temporary files.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// The program that runs other queues, built in `crates/mailslot-bench/peers`: they run in turn with ours, in the
    /// cases with 32 callers and with no-op handlers at a concurrency of 64.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) peers: Option<PathBuf>,

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
    /// Accepts that commit together with a change of the application. PostgreSQL only.
    Transaction,
    /// The store's trait without the engine.
    Store,
    /// A backlog, drained.
    Execute,
    /// A backlog, drained by one process and by four. PostgreSQL only.
    Processes,
    /// From the call of accept to the start of the handler.
    Latency,
    /// Callers accept while one worker executes.
    Both,
    /// What a claim costs while an old snapshot is held. PostgreSQL only.
    Snapshot,
    /// What a claim costs before a long backlog. PostgreSQL only.
    Backlog,
    /// What accepts and claims cost beside millions that are kept. PostgreSQL only; runs only if it is named.
    Retained,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// SQLite, `synchronous=FULL`: the log is on disk.
    Full,
    /// SQLite, `synchronous=NORMAL`: the log is with the operating system.
    Normal,
    /// Memory: nothing.
    Memory,
    /// PostgreSQL, as the server is set: the log is on disk, unless it says otherwise.
    Postgres,
}

impl Suite {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Transaction => "transaction",
            Self::Store => "store",
            Self::Execute => "execute",
            Self::Processes => "processes",
            Self::Latency => "latency",
            Self::Both => "both",
            Self::Snapshot => "snapshot",
            Self::Backlog => "backlog",
            Self::Retained => "retained",
        }
    }

    /// The stores that have it.
    fn has(self, durability: Durability) -> bool {
        let everywhere = [Self::Accept, Self::Store, Self::Execute, Self::Latency, Self::Both];
        durability == Durability::Postgres || everywhere.contains(&self)
    }

    /// Its part of the whole time.
    fn share(self) -> f64 {
        match self {
            Self::Accept => 0.4,
            Self::Execute => 0.25,
            Self::Both => 0.15,
            _ => 0.1,
        }
    }
}

impl Durability {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "sqlite full",
            Self::Normal => "sqlite normal",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        }
    }
}

/// A sample on a server takes this long at least, in seconds: its processes share the cores and take turns in long
/// slices, so a shorter one would tell more about them.
const SERVER_SECONDS: f64 = 1.25;

/// A quick run: all samples together, in seconds.
const QUICK_SECONDS: f64 = 6.0;

/// A quick run: most messages of a backlog.
const QUICK_MESSAGES: usize = 3_000;

impl Options {
    pub(crate) fn suites(&self) -> Vec<Suite> {
        let named = if self.suites.is_empty() { Suite::value_variants() } else { &self.suites };
        let long = |suite: &Suite| *suite == Suite::Retained && !self.suites.contains(suite);
        named.iter().copied().filter(|suite| !long(suite)).collect()
    }

    pub(crate) fn stores(&self) -> Vec<Durability> {
        if self.stores.is_empty() { Durability::value_variants().to_vec() } else { self.stores.clone() }
    }

    /// The stores that were asked for and have this suite.
    pub(crate) fn stores_of(&self, suite: Suite) -> Vec<Durability> {
        self.stores().into_iter().filter(|store| suite.has(*store)).collect()
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        self.case.as_ref().is_none_or(|wanted| case.contains(wanted.as_str()))
    }

    pub(crate) fn repetitions(&self) -> usize {
        if self.quick { 1 } else { self.repetitions.max(1) }
    }

    /// So many messages, or few in a quick run.
    pub(crate) fn messages(&self, count: usize) -> usize {
        if self.quick { count.min(QUICK_MESSAGES) } else { count }
    }

    /// The span of each sample of a suite that has `samples` of them in each round: a fifth of it warms up.
    pub(crate) fn span(&self, suite: Suite, durability: Durability, samples: usize) -> Span {
        let seconds = if self.quick { self.total_seconds.min(QUICK_SECONDS) } else { self.total_seconds };
        let shares: f64 = self.suites().into_iter().map(Suite::share).sum();
        let samples = samples * self.repetitions();
        let each = seconds.max(0.1) * suite.share() / shares / float(samples.max(1) as u64);
        let on_server = durability == Durability::Postgres && !self.quick;
        spread(if on_server { each.max(SERVER_SECONDS) } else { each })
    }

    /// The span of a sample that is to show whether it stays flat.
    pub(crate) fn long_span(&self, short: Span) -> Span {
        if self.quick {
            short
        } else {
            Span { measured: seconds(self.seconds), ..spread(self.seconds.min(5.0)) }
        }
    }
}

fn spread(whole: f64) -> Span {
    let whole = seconds(whole);
    Span { warm_up: whole / 5, measured: whole * 4 / 5 }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.01, 86_400.0))
}
