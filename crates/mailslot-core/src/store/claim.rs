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

/// The first `limit` of all candidates, in claim order.
///
/// A store reads at most `limit` candidates, oldest due first, for each lane and class: the result is then exact.
pub fn pick_candidates(mut candidates: Vec<Candidate>, limit: usize) -> Vec<Candidate> {
    candidates.sort_unstable_by_key(Candidate::rank);
    candidates.truncate(limit);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(seq: i64, priority: Priority, due_s: i64) -> Candidate {
        Candidate { seq: Seq(seq), priority, due_at: Timestamp::from_second(due_s).unwrap() }
    }

    fn order(candidates: Vec<Candidate>) -> Vec<i64> {
        pick_candidates(candidates, 10).iter().map(|candidate| candidate.seq.0).collect()
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
