//! What a worker did: live on a terminal, in the log otherwise, and at the end.

use crate::args::Global;
use crate::error::Error;
use crate::output::Output;
use crate::progress::status_line;
use indicatif::ProgressBar;
use mailslot::{AnyStore, Inbox, Stats};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often the line on the terminal changes.
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// How often the log says what happened, if something did.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// What is being shown.
#[derive(Debug)]
pub(super) struct Progress {
    task: JoinHandle<()>,
    line: Option<ProgressBar>,
}

impl Progress {
    /// Stops showing it.
    pub(super) fn finish(self) {
        self.task.abort();
        if let Some(line) = self.line {
            line.finish_and_clear();
        }
    }
}

/// Shows what the worker does until it is finished.
pub(super) fn follow(inbox: &Inbox<AnyStore>, global: &Global) -> Progress {
    let line = status_line(global);
    let stats = inbox.watch();
    let task = match line.clone() {
        Some(line) => tokio::spawn(every(SHOW_EVERY, stats, move |_, now| line.set_message(text(now)))),
        None => tokio::spawn(every(LOG_EVERY, stats, |_, now| tracing::info!("{}", text(now)))),
    };
    Progress { task, line }
}

/// Shows a change at most once in an interval.
async fn every(interval: Duration, mut stats: watch::Receiver<Stats>, show: impl Fn(&Stats, &Stats)) {
    let mut before = Stats::default();
    let mut tick = tokio::time::interval(interval);
    loop {
        tick.tick().await;
        let now = *stats.borrow_and_update();
        // Heartbeats alone are nothing that happened.
        if Counts::of(&now) != Counts::of(&before) {
            show(&before, &now);
            before = now;
        }
    }
}

/// The counters that people ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Counts {
    started: u64,
    completed: u64,
    retried: u64,
    dead_lettered: u64,
    cancelled: u64,
    released: u64,
    lease_lost: u64,
    recovered: u64,
    store_errors: u64,
}

impl Counts {
    fn of(stats: &Stats) -> Self {
        Self {
            started: stats.started,
            completed: stats.completed,
            retried: stats.retried,
            dead_lettered: stats.dead_lettered,
            cancelled: stats.cancelled,
            released: stats.released,
            lease_lost: stats.lease_lost,
            recovered: stats.recovered,
            store_errors: stats.store_errors,
        }
    }

    fn ended(&self) -> u64 {
        self.completed + self.retried + self.dead_lettered + self.cancelled + self.released + self.lease_lost
    }
}

fn text(stats: &Stats) -> String {
    let counts = Counts::of(stats);
    let running = counts.started.saturating_sub(counts.ended());
    let mut text = format!("{} completed", counts.completed);
    let more = [
        (running, "running"),
        (counts.retried, "to be retried"),
        (counts.dead_lettered, "dead-lettered"),
        (counts.cancelled, "cancelled"),
        (counts.released, "given back"),
        (counts.lease_lost, "lost to another worker"),
        (counts.recovered, "recovered"),
        (counts.store_errors, "store errors"),
    ];
    for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
        // Writing to a string cannot fail.
        let _ = write!(text, ", {count} {what}");
    }
    text
}

/// Says at the end what was done: as the result of a drain, otherwise in the log.
pub(super) fn summary(stats: &Stats, is_result: bool, output: Output) -> Result<(), Error> {
    if is_result {
        return output.result(text(stats), &Counts::of(stats));
    }
    tracing::info!("stopped: {}", text(stats));
    Ok(())
}
