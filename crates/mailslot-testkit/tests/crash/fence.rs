//! The fence: no settlement takes effect under a token that is not the message's last one.
//!
//! Every claim and settlement that was answered is written down. What a killed process was never told is missing, which
//! can hide a fault and cannot make one up.

use super::journal::{self, Journal};
use mailslot_core::store::{Exchanged, Settled};
use mailslot_core::{Settlement, Status};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

/// Writes down what an exchange did.
pub(crate) fn note(journal: &Journal, settlements: &[Settlement], exchanged: &Exchanged) {
    let mut lines = String::new();
    for leased in &exchanged.leased {
        let _ = writeln!(lines, "claim {} {}", leased.envelope.seq, leased.lease.generation);
    }
    for (settlement, settled) in settlements.iter().zip(&exchanged.settled) {
        let answer = match settled {
            Settled::Applied(status) if status.is_terminal() => "ended",
            Settled::Applied(Status::Pending) => "returned",
            Settled::Applied(_) => "applied",
            Settled::LeaseLost => "lost",
        };
        let _ = writeln!(lines, "{answer} {} {}", settlement.seq, settlement.lease.generation);
    }
    if !lines.is_empty() {
        journal.write(lines.trim_end());
    }
}

/// What the processes of a round were told about leases.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// The last lease of each message.
    last: HashMap<i64, i64>,
    /// Message and lease of each settlement that ended a message or gave it back.
    ended: Vec<(i64, i64)>,
    returned: Vec<(i64, i64)>,
    /// How many settlements came too late.
    pub(crate) lost: u64,
}

impl Fence {
    pub(crate) fn read(dir: &Path) -> Self {
        let mut fence = Self::default();
        for words in journal::read(dir, journal::LEASES) {
            let number = |index: usize| words[index].parse().expect("a message or a lease is a number");
            let (seq, generation): (i64, i64) = (number(1), number(2));
            match words[0].as_str() {
                "claim" => {
                    let last = fence.last.entry(seq).or_default();
                    *last = (*last).max(generation);
                }
                "ended" => fence.ended.push((seq, generation)),
                "returned" => fence.returned.push((seq, generation)),
                "lost" => fence.lost += 1,
                word => assert_eq!(word, "applied"),
            }
        }
        fence
    }

    /// Whether nobody was told of a later lease of the message.
    pub(crate) fn is_last(&self, seq: i64, generation: i64) -> bool {
        self.last.get(&seq).is_none_or(|last| *last <= generation)
    }

    /// Panics with a settlement that took effect and should not have.
    pub(crate) fn check(&self) {
        let mut ended = HashSet::new();
        for &(seq, generation) in &self.ended {
            assert!(
                self.is_last(seq, generation),
                "message {seq} was ended under the old lease {generation}"
            );
            assert!(ended.insert(seq), "message {seq} was ended twice, the second time under {generation}");
        }
        let mut returned = HashSet::new();
        for &place in &self.returned {
            assert!(returned.insert(place), "a message was given back twice under one lease: {place:?}");
        }
    }
}
