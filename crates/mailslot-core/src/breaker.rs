//! When to leave a broken dependency alone: the rule of a circuit breaker.
//!
//! Closed: everything runs, and outcomes are counted within a window. Open: nothing new begins, for a while. Half open: one
//! at a time is tried; some successes in a row close it, and one failure opens it again.

use crate::field::FieldError;
use std::fmt;
use std::time::{Duration, Instant};

/// In how many parts the window is counted: what falls out of it falls out part by part.
const PARTS: u8 = 12;

/// The longest time that a setting may name. Longer ones are wrong units, and would not fit a clock.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Settings of a breaker, each with its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Fewer outcomes than this within the window say nothing. Default 10.
    pub samples_min: u32,
    /// From which share of failures on it opens, in percent. Default 50.
    pub failures_percent: u32,
    /// For how long outcomes count, up to a day. Default 2 min.
    pub window: Duration,
    /// For how long it stays open, up to a day. Default 1 min.
    pub open_for: Duration,
    /// How many successes in a row close it again. Default 3.
    pub probes: u32,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { samples_min: 10, failures_percent: 50, window: 2 * minute, open_for: minute, probes: 3 }
    }
}

impl BreakerConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first one out of bounds, by name.
    pub fn check(&self) -> Result<(), FieldError> {
        let is_wrong = |time: Duration| time.is_zero() || time > TIME_MAX;
        let wrong = [
            ("circuit_breaker.samples_min", self.samples_min == 0, "use at least 1"),
            ("circuit_breaker.failures_percent", !(1..=100).contains(&self.failures_percent), "use 1 to 100"),
            (
                "circuit_breaker.window",
                is_wrong(self.window),
                "use a time in which outcomes come together, up to a day",
            ),
            (
                "circuit_breaker.open_for",
                is_wrong(self.open_for),
                "use the time that a dependency needs to recover, up to a day",
            ),
            ("circuit_breaker.probes", self.probes == 0, "use at least 1"),
        ];
        let first = wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong);
        first.map_or(Ok(()), |(field, _, fix)| Err(FieldError::new(field, "is out of bounds", fix)))
    }
}

/// How a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Circuit {
    /// Everything runs.
    #[default]
    Closed,
    /// Nothing new begins.
    Open,
    /// One at a time is tried.
    HalfOpen,
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        })
    }
}

/// What an attempt says about the dependency behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// It works.
    Success,
    /// It does not.
    Failure,
}

/// A circuit breaker. It reads no clock: it is told the time.
#[derive(Debug)]
pub struct Breaker {
    config: BreakerConfig,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed(Window),
    Open { until: Instant },
    HalfOpen { since: Instant, successes: u32 },
}

impl Breaker {
    /// A closed one.
    pub fn new(config: BreakerConfig, now: Instant) -> Self {
        Self { config, state: State::Closed(Window::new(now)) }
    }

    /// How it stands now: an open one is half open once its time is over.
    pub fn circuit(&mut self, now: Instant) -> Circuit {
        if matches!(self.state, State::Open { until } if until <= now) {
            self.state = State::HalfOpen { since: now, successes: 0 };
        }
        match self.state {
            State::Closed(_) => Circuit::Closed,
            State::Open { .. } => Circuit::Open,
            State::HalfOpen { .. } => Circuit::HalfOpen,
        }
    }

    /// Until when it stays open, if it is.
    pub fn open_until(&self) -> Option<Instant> {
        match self.state {
            State::Open { until } => Some(until),
            State::Closed(_) | State::HalfOpen { .. } => None,
        }
    }

    /// Takes what an attempt says that began at `begun`.
    ///
    /// One that began before the first probe may have done its work long ago: once it has opened, it says nothing.
    pub fn on(&mut self, signal: Signal, begun: Instant, now: Instant) -> Circuit {
        self.circuit(now);
        let config = self.config;
        let opens = State::Open { until: now + config.open_for };
        let next = match (&mut self.state, signal) {
            (State::Closed(window), signal) => {
                window.count(signal, now, config.window);
                window.is_bad(config).then_some(opens)
            }
            (State::Open { .. }, _) => None,
            (State::HalfOpen { since, .. }, _) if begun < *since => None,
            (State::HalfOpen { .. }, Signal::Failure) => Some(opens),
            (State::HalfOpen { successes, .. }, Signal::Success) => {
                *successes += 1;
                (*successes >= config.probes).then(|| State::Closed(Window::new(now)))
            }
        };
        if let Some(next) = next {
            self.state = next;
        }
        self.circuit(now)
    }
}

/// Outcomes of the last while, part by part.
#[derive(Debug)]
struct Window {
    parts: [Part; PARTS as usize],
    current: usize,
    since: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    all: u32,
    failures: u32,
}

impl Window {
    fn new(now: Instant) -> Self {
        Self { parts: [Part::default(); PARTS as usize], current: 0, since: now }
    }

    fn count(&mut self, signal: Signal, now: Instant, length: Duration) {
        self.turn(now, length / u32::from(PARTS));
        let part = &mut self.parts[self.current];
        part.all = part.all.saturating_add(1);
        part.failures = part.failures.saturating_add(u32::from(signal == Signal::Failure));
    }

    /// Forgets what is too old by now.
    fn turn(&mut self, now: Instant, part: Duration) {
        let part = part.max(Duration::from_nanos(1));
        for _ in 0..PARTS {
            if now.saturating_duration_since(self.since) < part {
                return;
            }
            self.since += part;
            self.current = (self.current + 1) % self.parts.len();
            self.parts[self.current] = Part::default();
        }
        // More than a whole window has passed.
        self.since = now;
    }

    fn is_bad(&self, config: BreakerConfig) -> bool {
        let sum = |of: fn(&Part) -> u32| self.parts.iter().map(|part| u64::from(of(part))).sum::<u64>();
        let (all, failures) = (sum(|part| part.all), sum(|part| part.failures));
        all >= u64::from(config.samples_min) && failures * 100 >= all * u64::from(config.failures_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BreakerConfig = BreakerConfig {
        samples_min: 4,
        failures_percent: 50,
        window: Duration::from_secs(120),
        open_for: Duration::from_secs(60),
        probes: 3,
    };

    /// A breaker in this state, and the time.
    fn breaker(circuit: Circuit) -> (Breaker, Instant) {
        let mut now = Instant::now();
        let mut breaker = Breaker::new(CONFIG, now);
        if circuit != Circuit::Closed {
            (0..4).for_each(|_| _ = breaker.on(Signal::Failure, now, now));
            assert_eq!(breaker.open_until(), Some(now + CONFIG.open_for));
        }
        if circuit == Circuit::HalfOpen {
            now += CONFIG.open_for;
        }
        assert_eq!(breaker.circuit(now), circuit);
        (breaker, now)
    }

    #[test]
    fn every_state_has_an_answer_to_every_signal() {
        let table = [
            (Circuit::Closed, Signal::Success, Circuit::Closed),
            (Circuit::Closed, Signal::Failure, Circuit::Closed),
            (Circuit::Open, Signal::Success, Circuit::Open),
            (Circuit::Open, Signal::Failure, Circuit::Open),
            (Circuit::HalfOpen, Signal::Success, Circuit::HalfOpen),
            (Circuit::HalfOpen, Signal::Failure, Circuit::Open),
        ];
        for (state, signal, next) in table {
            let (mut breaker, now) = breaker(state);
            assert_eq!(breaker.on(signal, now, now), next, "{state} {signal:?}");
        }
    }

    #[test]
    fn it_opens_at_the_share_of_failures_and_not_with_too_few_outcomes() {
        let (mut breaker, now) = breaker(Circuit::Closed);
        for (signal, next) in [
            (Signal::Failure, Circuit::Closed),
            (Signal::Failure, Circuit::Closed),
            (Signal::Success, Circuit::Closed),
            // Two of four are half.
            (Signal::Success, Circuit::Open),
        ] {
            assert_eq!(breaker.on(signal, now, now), next);
        }
    }

    #[test]
    fn old_outcomes_do_not_count() {
        let (mut breaker, mut now) = breaker(Circuit::Closed);
        for _ in 0..100 {
            assert_eq!(breaker.on(Signal::Failure, now, now), Circuit::Closed);
            now += CONFIG.window / 3;
        }
        (0..3).for_each(|_| _ = breaker.on(Signal::Failure, now, now));
        assert_eq!(breaker.circuit(now), Circuit::Open);
    }

    #[test]
    fn successes_in_a_row_close_it_and_it_has_forgotten_its_past() {
        let (mut breaker, now) = breaker(Circuit::HalfOpen);
        breaker.on(Signal::Success, now, now);
        breaker.on(Signal::Success, now, now);
        assert_eq!(breaker.on(Signal::Success, now, now), Circuit::Closed);
        assert_eq!(breaker.on(Signal::Failure, now, now), Circuit::Closed);
    }

    #[test]
    fn a_failed_probe_opens_it_for_the_whole_time_again() {
        let (mut breaker, now) = breaker(Circuit::HalfOpen);
        breaker.on(Signal::Success, now, now);
        assert_eq!(breaker.on(Signal::Failure, now, now), Circuit::Open);
        assert_eq!(breaker.circuit(now + CONFIG.open_for / 2), Circuit::Open);
        assert_eq!(breaker.circuit(now + CONFIG.open_for), Circuit::HalfOpen);
    }

    #[test]
    fn what_began_before_the_first_probe_is_no_probe() {
        for signal in [Signal::Success, Signal::Failure] {
            let (mut breaker, now) = breaker(Circuit::HalfOpen);
            let before = now.checked_sub(CONFIG.open_for / 2).unwrap();
            for _ in 0..CONFIG.probes {
                assert_eq!(breaker.on(signal, before, now), Circuit::HalfOpen, "{signal:?}");
            }
        }
    }

    #[test]
    fn a_setting_out_of_bounds_is_named() {
        let fine = BreakerConfig::default();
        fine.check().unwrap();
        BreakerConfig { window: TIME_MAX, open_for: TIME_MAX, ..fine }.check().unwrap();
        for (wrong, field) in [
            (BreakerConfig { samples_min: 0, ..fine }, "samples_min"),
            (BreakerConfig { failures_percent: 0, ..fine }, "failures_percent"),
            (BreakerConfig { failures_percent: 101, ..fine }, "failures_percent"),
            (BreakerConfig { window: Duration::ZERO, ..fine }, "window"),
            (BreakerConfig { window: Duration::MAX, ..fine }, "window"),
            (BreakerConfig { open_for: Duration::ZERO, ..fine }, "open_for"),
            (BreakerConfig { open_for: Duration::MAX, ..fine }, "open_for"),
            (BreakerConfig { probes: 0, ..fine }, "probes"),
        ] {
            assert_eq!(wrong.check().unwrap_err().field(), format!("circuit_breaker.{field}"));
        }
    }
}
