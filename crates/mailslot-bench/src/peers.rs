//! Other queues, which the program in `peers` runs against the same server, each in a database of its own.

use crate::server::Server;
use anyhow::{Context as _, ensure};
use mailslot_load::Sample;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// How long each of its samples enqueues, in seconds.
const SECONDS: f64 = 2.0;

/// The same in a quick run.
const QUICK_SECONDS: f64 = 0.2;

/// The program, with the queues that it has.
pub(crate) struct Peers {
    program: PathBuf,
    pub(crate) listed: Vec<Listed>,
}

/// One of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) version: String,
    /// How it is set up.
    pub(crate) settings: String,
}

/// What one run of it found.
#[derive(Debug, Deserialize)]
struct Found {
    messages: u64,
    per_second: f64,
}

impl Peers {
    pub(crate) async fn find(program: &Path) -> anyhow::Result<Self> {
        let listed = run(Command::new(program).arg("list")).await?;
        Ok(Self { program: program.to_owned(), listed })
    }

    /// Single enqueues over so many callers.
    pub(crate) async fn enqueue(
        &self,
        peer: usize,
        server: &Server,
        callers: usize,
        quick: bool,
    ) -> anyhow::Result<Sample> {
        let seconds = if quick { QUICK_SECONDS } else { SECONDS };
        let arguments = ["--callers".to_owned(), callers.to_string(), format!("--seconds={seconds}")];
        self.sample("enqueue", peer, server, &arguments).await
    }

    /// A backlog of jobs that do nothing.
    pub(crate) async fn execute(&self, peer: usize, server: &Server, jobs: usize) -> anyhow::Result<Sample> {
        self.sample("execute", peer, server, &[format!("--jobs={jobs}")]).await
    }

    async fn sample(
        &self,
        command: &str,
        peer: usize,
        server: &Server,
        arguments: &[String],
    ) -> anyhow::Result<Sample> {
        let name = &self.listed.get(peer).context("the queue is listed")?.name;
        let mut program = Command::new(&self.program);
        // Not as an argument, which everybody on the machine sees.
        program.env("MAILSLOT_BENCH_POSTGRES", server.url()).arg(command).arg(name).args(arguments);
        let Found { messages, per_second } =
            run(&mut program).await.with_context(|| format!("{name} failed"))?;
        Ok(Sample { messages, per_second, ..Sample::default() })
    }
}

async fn run<T: DeserializeOwned>(command: &mut Command) -> anyhow::Result<T> {
    let output =
        command.kill_on_drop(true).output().await.context("the program for other queues does not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("the program for other queues printed something else")
}
