//! Where a claim begins to look. Rows that were deleted stay in an index until no transaction can see them any more, and
//! a claim that began at the front would walk past all of them: with another session holding an old snapshot, ever more.
//! So it begins a little before the last due time that it took, and looks at the front only now and then, for what was
//! committed late.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far before the last due time a claim begins, in microseconds: longer than accepts usually take to commit.
const LAG: i64 = 100_000;

/// How often a claim looks at the front while there is enough to do behind it. One that finds nothing does at once.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The most of its time that a process spends on looking at the front: one part in so many.
const SWEEP_SHARE: u32 = 20;

/// The front.
const FRONT: i64 = i64::MIN;

/// Where each lane and class stands.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    since: HashMap<(i64, i64), i64>,
    swept: Option<Instant>,
    /// How long the last look at the front took.
    cost: Duration,
}

impl State {
    fn is_time(&self, every: Duration) -> bool {
        let every = every.max(self.cost * SWEEP_SHARE);
        self.swept.is_none_or(|swept| swept.elapsed() >= every)
    }

    fn sweep(&mut self, branches: usize) -> Look {
        let look = Look::at_front(branches);
        self.swept = Some(look.begun);
        look
    }
}

/// A claim's look.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) since: Vec<i64>,
    pub(crate) is_sweep: bool,
    begun: Instant,
}

impl Look {
    /// One from the front, whatever it costs.
    pub(crate) fn at_front(branches: usize) -> Self {
        Self { since: vec![FRONT; branches], is_sweep: true, begun: Instant::now() }
    }
}

impl Hints {
    /// Where to begin for each of these lanes and classes.
    pub(crate) fn look(&self, branches: &[(i64, i64)]) -> Look {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_time(SWEEP_EVERY) {
            return state.sweep(branches.len());
        }
        let since = |branch| state.since.get(branch).copied().unwrap_or(FRONT);
        Look { since: branches.iter().map(since).collect(), is_sweep: false, begun: Instant::now() }
    }

    /// Where claims begin at present, for who only looks.
    pub(crate) fn known(&self, branches: &[(i64, i64)]) -> Vec<i64> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        branches.iter().map(|branch| state.since.get(branch).copied().unwrap_or(FRONT)).collect()
    }

    /// Another look for a claim that found nothing, now from the front, unless the last such look was a moment ago.
    pub(crate) fn look_again(&self, look: &Look) -> Option<Look> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!look.is_sweep && state.is_time(Duration::ZERO)).then(|| state.sweep(look.since.len()))
    }

    /// What was taken: lane, class and due time of each message. What is left before it is for a look at the front.
    pub(crate) fn took(&self, taken: impl Iterator<Item = (i64, i64, i64)>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (lane, priority, due_at) in taken {
            let since = state.since.entry((lane, priority)).or_insert(FRONT);
            *since = (*since).max(due_at.saturating_sub(LAG));
        }
    }

    /// A look has been answered.
    pub(crate) fn looked(&self, look: &Look) {
        if look.is_sweep {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).cost = look.begun.elapsed();
        }
    }

    /// Messages became pending with these due times, which may lie before what was seen.
    pub(crate) fn lower(&self, lane: i64, priority: i64, due_at: i64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = state.since.get_mut(&(lane, priority)) {
            *since = (*since).min(due_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_begins_a_little_before_what_was_taken() {
        let hints = Hints::default();
        let first = hints.look(&[(1, 1), (1, 2)]);
        assert_eq!(first.since, [FRONT, FRONT]);
        hints.took([(1, 1, 5_000_000), (1, 1, 4_000_000)].into_iter());
        assert_eq!(hints.look(&[(1, 1), (1, 2)]).since, [4_900_000, FRONT]);
    }

    #[test]
    fn what_becomes_pending_before_it_is_seen() {
        let hints = Hints::default();
        hints.look(&[(1, 1)]);
        hints.took([(1, 1, 5_000_000)].into_iter());
        hints.lower(1, 1, 3_000_000);
        assert_eq!(hints.look(&[(1, 1)]).since, [3_000_000]);
    }

    #[test]
    fn a_claim_that_finds_nothing_looks_at_the_front_within_its_budget() {
        let hints = Hints::default();
        let first = hints.look(&[(1, 1)]);
        hints.took([(1, 1, 5_000_000)].into_iter());
        assert!(hints.look_again(&first).is_none(), "it was at the front");
        hints.0.lock().unwrap().cost = Duration::ZERO;
        let look = hints.look(&[(1, 1)]);
        assert_eq!(hints.look_again(&look).unwrap().since, [FRONT]);
        hints.0.lock().unwrap().cost = Duration::from_secs(3600);
        assert!(hints.look_again(&look).is_none(), "it would take more than its share of the time");
    }
}
