//! A backlog, drained: from the claim to the settled outcome. The rate is that of the middle of the drain, without its
//! start and its end.

use crate::contender::{Contender, Worker};
use crate::meter::{Meter, Sample, ServerGauge, Span, float};
use crate::running::Running;
use anyhow::ensure;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Messages in one call while the backlog is made.
const FILL: usize = 1_000;

/// Calls at once while the backlog is made.
const FILLERS: usize = 2;

/// How long the first message may take, on a machine that is busy with other things.
const FIRST_MAX: Duration = Duration::from_secs(30);

/// How often the counter is read.
const LOOK: Duration = Duration::from_millis(1);

/// Accepts a backlog, in batches.
///
/// # Errors
/// A call failed.
pub async fn fill(contender: Arc<dyn Contender>, backlog: usize) -> anyhow::Result<()> {
    let mut batches = JoinSet::new();
    for begin in (0..backlog).step_by(FILL) {
        if batches.len() == FILLERS {
            batches.join_next().await.transpose()?.transpose()?;
        }
        let contender = contender.clone();
        batches.spawn(async move { contender.accept_batch(FILL.min(backlog - begin)).await });
    }
    while let Some(filled) = batches.join_next().await {
        filled??;
    }
    Ok(())
}

/// Executes `backlog` messages that are there already, or as many as the span has time for.
///
/// # Errors
/// The worker failed, or executed nothing.
pub async fn drain(
    worker: Arc<dyn Worker>,
    backlog: u64,
    span: Span,
    server: Option<&dyn ServerGauge>,
) -> anyhow::Result<Sample> {
    let opened = Meter::start(&*worker, server).await?;
    let running = Running::start(&worker);
    let enough = |part: f64| float(worker.completed()) >= float(backlog) * part;
    // A slow case never gets to its twentieth within its time.
    let slow = || opened.elapsed() > span.warm_up.max(LOOK) && worker.completed() > 0;
    while !(enough(0.05) || slow() || running.has_ended() || opened.elapsed() > FIRST_MAX) {
        tokio::time::sleep(LOOK).await;
    }
    let mut meter = Meter::start(&*worker, server).await?;
    if enough(0.9) {
        // Faster than the first look: only the whole is left to be measured.
        meter = opened;
    }
    while !enough(0.95) && meter.elapsed() < span.measured && !running.has_ended() {
        tokio::time::sleep(LOOK).await;
    }
    let done = worker.completed() - meter.first.completed;
    let sample = meter.stop(&*worker, server, done).await?;
    running.stop().await?;
    ensure!(done > 0, "nothing was executed in {:?}", opened.elapsed());
    Ok(sample)
}

/// Executes this many messages that are there already, however long it takes.
///
/// # Errors
/// The worker failed.
pub async fn execute(worker: Arc<dyn Worker>, messages: u64) -> anyhow::Result<()> {
    let running = Running::start(&worker);
    while worker.completed() < messages && !running.has_ended() {
        tokio::time::sleep(LOOK).await;
    }
    running.stop().await
}
