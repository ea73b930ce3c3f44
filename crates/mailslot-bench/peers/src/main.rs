//! `mailslot-peers`: other queues on PostgreSQL, each with its own client, its own worker and its own best documented
//! settings. `mailslot-bench --peers` runs it beside ours, in turn; each run makes a database of its own and drops it.

mod apalis;
mod database;
mod graphile_node;
mod graphile_rust;
mod measure;
mod payload;
mod pgmq;

use clap::{Parser, Subcommand, ValueEnum};
use database::Database;
use measure::{Found, Peer};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Runs another queue on PostgreSQL and prints what it found as JSON.
#[derive(Debug, Parser)]
struct Options {
    /// The server; each run makes a database of its own on it.
    #[arg(long, env = "MAILSLOT_BENCH_POSTGRES", hide_env_values = true)]
    postgres: Option<String>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Which queues can be run here.
    List,
    /// Enqueues one job after the other, in a closed loop of so many callers.
    Enqueue {
        peer: Name,
        #[arg(long, default_value_t = 32)]
        callers: usize,
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// Executes a backlog of jobs that do nothing.
    Execute {
        peer: Name,
        #[arg(long, default_value_t = 100_000)]
        jobs: usize,
    },
}

/// A queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    Apalis,
    GraphileWorkerRs,
    GraphileWorker,
    Pgmq,
}

impl Name {
    fn text(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Version, and how it is set up.
    fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Apalis => apalis::ABOUT,
            Self::GraphileWorkerRs => graphile_rust::ABOUT,
            Self::GraphileWorker => graphile_node::ABOUT,
            Self::Pgmq => pgmq::ABOUT,
        }
    }

    fn is_here(self) -> bool {
        self != Self::GraphileWorker || graphile_node::is_here()
    }

    async fn open(self, url: &str) -> anyhow::Result<Arc<dyn Peer>> {
        Ok(match self {
            Self::Apalis => Arc::new(apalis::Apalis::open(url).await?),
            Self::GraphileWorkerRs => Arc::new(graphile_rust::Graphile::open(url).await?),
            Self::GraphileWorker => Arc::new(graphile_node::Graphile::open(url).await?),
            Self::Pgmq => Arc::new(pgmq::Pgmq::open(url).await?),
        })
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    version: &'static str,
    settings: &'static str,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let url = || options.postgres.clone().ok_or_else(|| anyhow::anyhow!("name a server with --postgres"));
    match options.command {
        Command::List => {
            let here = Name::value_variants().iter().filter(|name| name.is_here());
            let listed = here.map(|name| {
                let (version, settings) = name.about();
                Listed { name: name.text(), version, settings }
            });
            print(&listed.collect::<Vec<_>>())
        }
        Command::Enqueue { peer, callers, seconds } => {
            let time = Duration::from_secs_f64(seconds);
            print(&with(&url()?, peer, async |peer| measure::enqueue(peer, callers, time).await).await?)
        }
        Command::Execute { peer, jobs } => {
            print(&with(&url()?, peer, async |peer| measure::execute(peer, jobs).await).await?)
        }
    }
}

/// Runs a queue in a database of its own, which is dropped afterwards, also after a failure.
async fn with(
    url: &str,
    name: Name,
    run: impl AsyncFnOnce(Arc<dyn Peer>) -> anyhow::Result<Found>,
) -> anyhow::Result<Found> {
    let database = Database::create(url, &name.text()).await?;
    let found = async {
        let peer = name.open(database.url()).await?;
        run(peer).await
    };
    let found = found.await;
    database.drop().await?;
    found
}

fn print(value: &impl Serialize) -> anyhow::Result<()> {
    use std::io::Write as _;
    let text = serde_json::to_string(value)?;
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
