//! The order in which a claim takes messages.

use crate::id::Seq;
use crate::limits::PRIORITY_STEP;
use crate::metadata::Priority;
use jiff::{SignedDuration, Timestamp};

/// A due message that a claim could take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The message.
    pub seq: Seq,
    /// Its class.
    pub priority: Priority,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// Whether its last leases ran out, one after the other: see [`SUSPECT_AFTER`](crate::limits::SUSPECT_AFTER).
    pub suspect: bool,
}

impl Candidate {
    /// Sorts by due time with each lower class set back by one [`PRIORITY_STEP`], then by acceptance. So a high
    /// message overtakes, and a low one still gets its turn when it has waited long enough.
    fn rank(&self) -> (Timestamp, Seq) {
        let step = SignedDuration::try_from(PRIORITY_STEP).unwrap_or(SignedDuration::ZERO);
        let back = step.saturating_mul(i32::from(self.priority.rank()));
        (self.due_at.saturating_add(back).unwrap_or(Timestamp::MAX), self.seq)
    }
}

/// What a claim takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// These, in claim order.
    pub candidates: Vec<Candidate>,
    /// How many suspects were passed over: they are due and wait for the one that the owner holds.
    pub held_back: usize,
}

impl Pick {
    /// How many candidates of each lane and class to read instead, if suspects filled the `window` and others may wait
    /// behind them.
    pub fn wider_window(&self, wanted: usize, window: usize, more: bool) -> Option<usize> {
        let short = self.candidates.len() < wanted && self.held_back > 0 && more;
        (short && window < WINDOW_MAX).then(|| window.saturating_mul(4).min(WINDOW_MAX))
    }
}

/// Most candidates that are read of one lane and class: more suspects than this come from thousands of killed workers.
const WINDOW_MAX: usize = 16_384;

/// The first `limit` of all candidates, in claim order, with at most one suspect, and none if the owner holds one.
///
/// A store reads at most `limit` candidates, oldest due first, for each lane and class: without suspects the result is
/// then exact. With them, see [`Pick::wider_window`].
pub fn pick_candidates(mut candidates: Vec<Candidate>, limit: usize, holds_suspect: bool) -> Pick {
    candidates.sort_unstable_by_key(Candidate::rank);
    let mut pick = Pick { candidates: Vec::with_capacity(limit.min(candidates.len())), held_back: 0 };
    let mut suspects = usize::from(!holds_suspect);
    for candidate in candidates {
        if pick.candidates.len() == limit {
            break;
        }
        if candidate.suspect && suspects == 0 {
            pick.held_back += 1;
            continue;
        }
        suspects -= usize::from(candidate.suspect);
        pick.candidates.push(candidate);
    }
    pick
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(seq: i64, priority: Priority, due_s: i64) -> Candidate {
        let due_at = Timestamp::from_second(due_s).unwrap();
        Candidate { seq: Seq(seq), priority, due_at, suspect: false }
    }

    fn order(candidates: Vec<Candidate>) -> Vec<i64> {
        let pick = pick_candidates(candidates, 10, false);
        pick.candidates.iter().map(|candidate| candidate.seq.0).collect()
    }

    #[test]
    fn suspects_come_one_at_a_time_and_hold_up_nobody_else() {
        let suspect = |seq| Candidate { suspect: true, ..candidate(seq, Priority::Normal, 100) };
        let candidates = vec![suspect(1), suspect(2), candidate(3, Priority::Normal, 100)];
        let seqs = |pick: &Pick| pick.candidates.iter().map(|candidate| candidate.seq.0).collect::<Vec<_>>();
        let pick = pick_candidates(candidates.clone(), 10, false);
        assert_eq!((seqs(&pick), pick.held_back), (vec![1, 3], 1));
        let pick = pick_candidates(candidates, 10, true);
        assert_eq!((seqs(&pick), pick.held_back), (vec![3], 2));
    }

    #[test]
    fn classes_first_then_due_time_then_acceptance() {
        let (high, normal, low) = (Priority::High, Priority::Normal, Priority::Low);
        let found = order(vec![
            candidate(1, low, 100),
            candidate(3, normal, 100),
            candidate(2, normal, 100),
            candidate(4, normal, 99),
            candidate(5, high, 101),
        ]);
        assert_eq!(found, [5, 4, 2, 3, 1]);
    }

    #[test]
    fn a_low_message_gets_its_turn() {
        let found = order(vec![candidate(1, Priority::Low, 100), candidate(2, Priority::High, 161)]);
        assert_eq!(found, [1, 2]);
    }
}
