//! A window of time with what was done in it and what it cost.

use crate::contender::Contender;
use crate::latencies::Latencies;
use async_trait::async_trait;
use std::time::{Duration, Instant};

/// How long one sample takes.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Not measured.
    pub warm_up: Duration,
    /// Measured.
    pub measured: Duration,
}

/// What a database server used up so far.
#[derive(Debug, Clone, Copy)]
pub struct ServerReading {
    /// Bytes of write-ahead log.
    pub wal_bytes: u64,
    /// CPU time of all its processes, if they run on this machine.
    pub cpu: Option<Duration>,
}

/// Reads what a database server used up.
#[async_trait]
pub trait ServerGauge: Send + Sync {
    /// Reads it now.
    async fn read(&self) -> anyhow::Result<ServerReading>;
}

/// What was used up so far, at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// CPU time of this process and of those that it started.
    pub cpu: Duration,
    /// Write transactions.
    pub commits: u64,
    /// Messages that were settled.
    pub completed: u64,
    /// Accepts that were refused and repeated.
    pub refused: u64,
    /// What the server used, where there is one.
    pub server: Option<ServerReading>,
}

impl Reading {
    /// Reads it now.
    pub async fn of<C: Contender + ?Sized>(
        contender: &C,
        server: Option<&dyn ServerGauge>,
    ) -> anyhow::Result<Self> {
        let server = match server {
            Some(server) => Some(server.read().await?),
            None => None,
        };
        let (commits, completed, refused) = (contender.commits(), contender.completed(), contender.refused());
        Ok(Self { cpu: contender.cpu(), commits, completed, refused, server })
    }
}

/// What one sample found.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// How many messages it is about.
    pub messages: u64,
    /// Messages a second.
    pub per_second: f64,
    /// CPU time of the program, microseconds for each message.
    pub cpu_us: f64,
    /// How long the calls of accept took.
    pub calls: Option<Latencies>,
    /// How long after the call of accept handlers started.
    pub starts: Option<Latencies>,
    /// Messages for each write transaction.
    pub per_commit: Option<f64>,
    /// Bytes of the server's log for each message.
    pub wal_bytes: Option<f64>,
    /// CPU time of the server, microseconds for each message.
    pub server_cpu_us: Option<f64>,
    /// Messages in each second of the window, if it has several.
    pub rates: Vec<f64>,
    /// Accepts that were refused and repeated, because messages waited too long already.
    pub refused: u64,
    /// Messages accepted for each that was executed; above 1 the backlog grew.
    pub behind: Option<f64>,
}

impl Sample {
    /// What `messages` in this time cost.
    pub fn of(messages: u64, elapsed: Duration, first: &Reading, last: &Reading) -> Self {
        let each = |total: f64| total / float(messages.max(1));
        let micros = |time: Duration| each(time.as_secs_f64() * 1e6);
        let servers = first.server.zip(last.server);
        let server_cpu = servers.and_then(|(first, last)| Some(last.cpu?.saturating_sub(first.cpu?)));
        let commits = last.commits.saturating_sub(first.commits);
        Self {
            messages,
            per_second: float(messages) / elapsed.as_secs_f64().max(1e-9),
            cpu_us: micros(last.cpu.saturating_sub(first.cpu)),
            refused: last.refused.saturating_sub(first.refused),
            per_commit: (commits > 0).then(|| float(messages) / float(commits)),
            wal_bytes: servers
                .map(|(first, last)| each(float(last.wal_bytes.saturating_sub(first.wal_bytes)))),
            server_cpu_us: server_cpu.map(micros),
            ..Self::default()
        }
    }
}

/// A running window.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    since: Instant,
    /// What was used up when it began.
    pub first: Reading,
}

impl Meter {
    /// Opens it.
    pub async fn start<C: Contender + ?Sized>(
        contender: &C,
        server: Option<&dyn ServerGauge>,
    ) -> anyhow::Result<Self> {
        let first = Reading::of(contender, server).await?;
        Ok(Self { since: Instant::now(), first })
    }

    /// For how long it is open.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Closes it; `messages` were handled in it.
    pub async fn stop<C: Contender + ?Sized>(
        self,
        contender: &C,
        server: Option<&dyn ServerGauge>,
        messages: u64,
    ) -> anyhow::Result<Sample> {
        let elapsed = self.since.elapsed();
        let last = Reading::of(contender, server).await?;
        Ok(Sample::of(messages, elapsed, &self.first, &last))
    }
}

/// CPU time of this process so far, in all its threads.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Counts are far below the 53 bits of a float.
#[expect(clippy::cast_precision_loss, reason = "counts of one run")]
pub fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(seconds: u64, commits: u64, wal_bytes: u64) -> Reading {
        let cpu = Duration::from_secs(seconds);
        let server = Some(ServerReading { wal_bytes, cpu: Some(cpu * 2) });
        Reading { cpu, commits, server, ..Reading::default() }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers divide exactly")]
    fn costs_are_those_of_the_window_for_each_message() {
        let sample = Sample::of(10, Duration::from_secs(2), &reading(1, 5, 1_000), &reading(2, 10, 3_000));
        assert_eq!(sample.per_second, 5.0);
        assert_eq!(sample.cpu_us, 100_000.0);
        assert_eq!(sample.per_commit, Some(2.0));
        assert_eq!(sample.wal_bytes, Some(200.0));
        assert_eq!(sample.server_cpu_us, Some(200_000.0));
    }
}
