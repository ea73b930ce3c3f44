//! How far ahead of the handlers a worker claims.

use std::time::{Duration, Instant};

/// How long a claimed message may wait in this process: long enough to hide a claim, short enough that another
/// process could not have started it sooner.
const AHEAD: Duration = Duration::from_millis(50);

/// Measures how fast handlers finish. Fast ones get a full batch ahead, slow ones none: a message that waits here
/// could run elsewhere.
#[derive(Debug)]
pub(super) struct Pace {
    per_second: f64,
    finished: u32,
    since: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { per_second: 0.0, finished: 0, since: now }
    }

    pub(super) fn finished(&mut self) {
        self.finished = self.finished.saturating_add(1);
    }

    /// Closes a measurement.
    pub(super) fn turn(&mut self, now: Instant) {
        let elapsed = now.duration_since(self.since).as_secs_f64().max(1e-4);
        let measured = f64::from(self.finished) / elapsed;
        self.per_second = measured.max(f64::midpoint(self.per_second, measured));
        self.finished = 0;
        self.since = now;
    }

    /// How many messages to hold beyond those that run, at most `max`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float saturates; never negative"
    )]
    pub(super) fn ahead(&self, max: usize) -> usize {
        ((self.per_second * AHEAD.as_secs_f64()) as usize).min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(finished: u32, within: Duration) -> usize {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        (0..finished).for_each(|_| pace.finished());
        pace.turn(start + within);
        pace.ahead(200)
    }

    #[test]
    fn fast_handlers_get_a_batch_ahead_and_slow_ones_nothing() {
        assert_eq!(ahead(16, Duration::from_millis(1)), 200);
        assert_eq!(ahead(16, Duration::from_millis(100)), 8);
        assert_eq!(ahead(16, Duration::from_secs(600)), 0);
        assert_eq!(ahead(0, Duration::from_millis(1)), 0);
    }
}
