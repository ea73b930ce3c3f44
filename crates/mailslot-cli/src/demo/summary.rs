//! The result of a demo, for people and for programs.

use super::audit::Audit;
use super::screen::Screen;
use serde::Serialize;

/// What a demo counted.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// The store, as `--store` takes it.
    pub(super) store: String,
    /// Messages accepted.
    pub(super) accepted: usize,
    /// Messages accepted a second.
    pub(super) accepted_per_second: f64,
    /// Repeated deliveries that were recognised.
    pub(super) duplicates: usize,
    /// Deliveries that were refused because their key was known with other content.
    pub(super) conflicts: usize,
    /// What such a sender is told.
    pub(super) conflict: String,
    /// Worker processes that were killed.
    pub(super) crashes: u64,
    /// After the work with faults.
    pub(super) worked: Audit,
    /// Dead letters that were redriven after the repair.
    pub(super) redriven: u64,
    /// After the redrive.
    pub(super) repaired: Audit,
    /// How long all of it took.
    pub(super) seconds: f64,
}

/// Shows what the work with faults came to.
pub(super) fn show(screen: &Screen, accepted: usize, duplicates: usize, crashes: u64, audit: &Audit) {
    let dead: u64 = audit.dead_letters.values().sum();
    let row = |label: &str, count: u64, remark: &str| {
        screen.say(format!("{label:<24}{count:>6}   {remark}").trim_end());
    };
    row("accepted", accepted as u64, "");
    row("duplicates recognised", duplicates as u64, "none was stored");
    row("conflicts refused", 1, "");
    row("handled", audit.handled, "");
    row("retries", audit.retries, "attempts that failed and were repeated");
    row("crashes survived", crashes, "whole worker processes");
    row("leases run out", audit.leases_run_out, "attempts that the dead workers took with them");
    row("dead letters", dead, "kept with their error, for a person to decide");
    for (reason, count) in &audit.dead_letters {
        row(&format!("  {reason}"), *count, cause(reason));
    }
    row("effects that ran twice", audit.effects_twice, twice(audit));
    row("out of order", audit.out_of_order, "within a repository, which is a session");
    row("broken invariants", audit.violations.len() as u64, "checked by the store");
    row("lost", audit.lost, "every receipt is counted: one final state each");
}

fn cause(reason: &str) -> &'static str {
    match reason {
        "attempts_exhausted" => "the handler failed until no attempt was left",
        "crashed" => "its workers died until no attempt was left",
        _ => "",
    }
}

fn twice(audit: &Audit) -> &'static str {
    match (audit.effects_twice_unexplained, audit.effects_twice) {
        (0, 0) => "a crash between an effect and its record would repeat it",
        (0, _) => "in the hands of a killed worker, between effect and record",
        _ => "NOT explained by a crash",
    }
}
