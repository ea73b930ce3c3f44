//! How long to leave a store or a broker alone that has failed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The first wait; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(50);

/// The longest wait: short beside an outage, long beside a failed call.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that grow with each failure in a row, and are spread so that processes do not come back together.
#[derive(Debug, Default)]
pub(super) struct Pause {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    until: Option<Instant>,
}

impl Pause {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call failed that began at `begun`. Gives how long to wait. `unit` is a random number from 0 to 1.
    ///
    /// Calls that fail together count as one failure.
    pub(super) fn failed(&self, begun: Instant, unit: f64) -> Duration {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(until) = state.until.filter(|until| *until > now || begun < *until) {
            return until.saturating_duration_since(now);
        }
        let doubled = FIRST.saturating_mul(1 << state.failures.min(10)).min(LONGEST);
        let wait = doubled.mul_f64(0.75 + unit / 2.0);
        state.failures = state.failures.saturating_add(1);
        state.until = Some(now + wait);
        wait
    }

    /// A call worked.
    pub(super) fn worked(&self) {
        *self.state() = State::default();
    }

    /// Until when to wait, if at all.
    pub(super) fn until(&self) -> Option<Instant> {
        self.state().until.filter(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_until_a_call_works() {
        let pause = Pause::default();
        let mut waits = Vec::new();
        for _ in 0..9 {
            let wait = pause.failed(Instant::now(), 0.5);
            assert!(pause.until().is_some());
            tokio::time::advance(wait).await;
            assert_eq!(pause.until(), None);
            waits.push(wait.as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        pause.worked();
        assert_eq!(pause.failed(Instant::now(), 0.5), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_fail_together_are_one_failure() {
        let pause = Pause::default();
        let begun = Instant::now();
        let wait = pause.failed(begun, 0.5);
        assert_eq!(pause.failed(begun, 0.5), wait);
        tokio::time::advance(wait).await;
        assert_eq!(pause.failed(begun, 0.5), Duration::ZERO, "it began before the end of the first wait");
        assert_eq!(pause.failed(Instant::now(), 0.5), FIRST * 2);
    }
}
