//! What can be put under load.

use crate::latencies::Latencies;
use crate::meter::cpu_time;
use async_trait::async_trait;
use std::time::Duration;
use tokio::sync::oneshot;

/// Something that takes messages as an inbox does.
#[async_trait]
pub trait Contender: Send + Sync {
    /// Stores one message durably, with a key of its own or without.
    async fn accept(&self, keyed: bool) -> anyhow::Result<()>;

    /// Stores keyed messages together.
    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()>;

    /// Write transactions so far.
    fn commits(&self) -> u64;

    /// Messages that are settled so far, for who executes.
    fn completed(&self) -> u64 {
        0
    }

    /// Accepts that were refused and repeated so far, because messages waited too long already.
    fn refused(&self) -> u64 {
        0
    }

    /// CPU time so far, of this process and of those that it started.
    fn cpu(&self) -> Duration {
        cpu_time()
    }
}

/// A contender that also executes.
#[async_trait]
pub trait Worker: Contender {
    /// Executes until told to stop.
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()>;

    /// Starts or stops to record how long after their accepts handlers start.
    fn record(&self, recording: bool);

    /// Takes all that was recorded. What runs in other processes is complete when [`run`](Self::run) returned.
    fn starts(&self) -> Latencies;
}
