//! Retry policies: how often, and how long between.

use crate::field::FieldError;
use crate::limits::{ATTEMPTS_MAX, DUE_IN_MAX};
use std::time::Duration;

/// How often a message is tried and how long it waits in between. Defaults: 5 attempts, 5 s doubling up to 5 min,
/// with jitter: a start that suits calls to other services, to be changed per contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    backoff: Backoff,
    initial: Duration,
    delay_max: Duration,
    attempts_max: u32,
    jitter: bool,
}

/// How the delay grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backoff {
    Fixed,
    Linear,
    Exponential,
}

impl Default for Retry {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(5))
    }
}

impl Retry {
    /// The delay doubles: initial, 2 x, 4 x, 8 x.
    pub fn exponential(initial: Duration) -> Self {
        Self::with(Backoff::Exponential, initial)
    }

    /// The delay grows by the same step: initial, 2 x, 3 x, 4 x.
    pub fn linear(initial: Duration) -> Self {
        Self::with(Backoff::Linear, initial)
    }

    /// The delay stays the same.
    pub fn fixed(delay: Duration) -> Self {
        Self::with(Backoff::Fixed, delay)
    }

    /// One attempt only.
    pub fn never() -> Self {
        Self::fixed(Duration::ZERO).max_attempts(1)
    }

    fn with(backoff: Backoff, initial: Duration) -> Self {
        let delay_max = Duration::from_secs(300).max(initial);
        Self { backoff, initial, delay_max, attempts_max: 5, jitter: true }
    }

    /// The longest delay.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.delay_max = delay;
        self
    }

    /// How often a message is tried in all.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// Whether delays are spread by 20 % to both sides, so that what failed together does not come back together.
    pub fn jitter(mut self, jitter: bool) -> Self {
        self.jitter = jitter;
        self
    }

    /// How often a message is tried in all.
    pub fn attempts_max(&self) -> u32 {
        self.attempts_max
    }

    /// Checks the policy.
    ///
    /// # Errors
    /// No attempt at all, more than [`ATTEMPTS_MAX`], or an initial delay above the longest one.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.attempts_max == 0 || self.attempts_max > ATTEMPTS_MAX {
            let fix = format!("use 1 to {ATTEMPTS_MAX}; 1 means no retry");
            return Err(FieldError::new("retry.max_attempts", format!("is {}", self.attempts_max), fix));
        }
        if self.initial > self.delay_max {
            let fix = "raise max_delay or lower the initial delay";
            return Err(FieldError::new("retry.max_delay", "is shorter than the initial delay", fix));
        }
        Ok(())
    }

    /// How long to wait after attempt `number` (from 1) failed, or `None` if it was the last.
    ///
    /// `unit` is a random number from 0 to 1; `retry_after` is what the handler asked for and can only lengthen.
    pub fn next(&self, number: u32, retry_after: Option<Duration>, unit: f64) -> Option<Duration> {
        if number >= self.attempts_max {
            return None;
        }
        Some(self.delay(number, unit).max(retry_after.unwrap_or_default()).min(DUE_IN_MAX))
    }

    fn delay(&self, number: u32, unit: f64) -> Duration {
        let steps = number.saturating_sub(1);
        let factor = match self.backoff {
            Backoff::Fixed => 1,
            Backoff::Linear => number.max(1),
            Backoff::Exponential => 1u32.checked_shl(steps).unwrap_or(u32::MAX),
        };
        let delay = self.initial.saturating_mul(factor).min(self.delay_max);
        if self.jitter { delay.mul_f64(0.8 + 0.4 * unit.clamp(0.0, 1.0)).min(self.delay_max) } else { delay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secs(delays: &[u64]) -> Vec<Option<Duration>> {
        delays.iter().map(|&s| Some(Duration::from_secs(s))).chain([None]).collect()
    }

    #[track_caller]
    fn check(policy: &Retry, delays: &[u64]) {
        let attempts = u32::try_from(delays.len()).unwrap() + 1;
        let found: Vec<_> = (1..=attempts).map(|number| policy.next(number, None, 0.5)).collect();
        assert_eq!(found, secs(delays));
    }

    #[test]
    fn delays_grow_as_named() {
        check(&Retry::default().jitter(false), &[5, 10, 20, 40]);
        check(&Retry::linear(Duration::from_secs(5)).jitter(false), &[5, 10, 15, 20]);
        check(&Retry::fixed(Duration::from_secs(5)).jitter(false), &[5, 5, 5, 5]);
        check(&Retry::never(), &[]);
    }

    #[test]
    fn retry_after_only_lengthens() {
        let policy = Retry::fixed(Duration::from_secs(10)).jitter(false);
        assert_eq!(policy.next(1, Some(Duration::from_secs(3)), 0.5), Some(Duration::from_secs(10)));
        assert_eq!(policy.next(1, Some(Duration::from_secs(900)), 0.5), Some(Duration::from_secs(900)));
        assert_eq!(policy.next(5, Some(Duration::from_secs(900)), 0.5), None);
    }

    #[test]
    fn nonsense_is_refused_by_field() {
        assert_eq!(Retry::default().max_attempts(0).check().unwrap_err().field(), "retry.max_attempts");
        assert_eq!(Retry::default().max_attempts(1001).check().unwrap_err().field(), "retry.max_attempts");
        let short = Retry::default().max_delay(Duration::from_secs(1));
        assert_eq!(short.check().unwrap_err().field(), "retry.max_delay");
    }

    proptest! {
        #[test]
        fn delays_stay_within_their_bounds(
            initial in 0u64..10_000, max in 10_000u64..1_000_000, number in 1u32..2000, unit in 0.0f64..1.0,
        ) {
            let initial = Duration::from_millis(initial);
            let max = Duration::from_millis(max);
            for policy in [Retry::exponential(initial), Retry::linear(initial), Retry::fixed(initial)] {
                let policy = policy.max_delay(max).max_attempts(u32::MAX);
                let plain = policy.clone().jitter(false).next(number, None, unit).unwrap();
                let jittered = policy.next(number, None, unit).unwrap();
                prop_assert!(jittered <= max && plain <= max);
                prop_assert!(jittered >= plain.mul_f64(0.799) && jittered <= plain.mul_f64(1.201));
            }
        }
    }
}
