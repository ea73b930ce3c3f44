//! Time and chance as parameters, so that a test can hold both.

use jiff::{SignedDuration, Timestamp};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Where a store or an engine reads the time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present instant, to the microsecond.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Stores keep microseconds; cutting here makes what is read back equal to what was given.
        Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A clock that moves only when a test says so.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_microsecond()))
    }

    /// Moves the clock. A negative amount moves it back, as a corrected system clock would.
    pub fn advance(&self, by: SignedDuration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::at(Timestamp::from_second(1_800_000_000).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// A source of chance for jitter. Not for secrets.
pub trait Random: Send + Sync + std::fmt::Debug {
    /// A number from 0 up to, not including, 1.
    fn unit(&self) -> f64;
}

/// A seeded generator (SplitMix64): the same seed gives the same numbers.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A sequence that differs between processes.
    pub fn from_entropy() -> Self {
        Self::new(uuid::Uuid::new_v4().as_u64_pair().0)
    }
}

impl Random for SeededRandom {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit into the mantissa")]
    fn unit(&self) -> f64 {
        // Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
        let mut z =
            self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Numbers that a test wrote down, in turn; the last one repeats.
#[derive(Debug)]
pub struct ScriptedRandom(Mutex<Vec<f64>>);

impl ScriptedRandom {
    /// Gives `numbers` in this order.
    pub fn new(mut numbers: Vec<f64>) -> Self {
        numbers.reverse();
        Self(Mutex::new(numbers))
    }
}

impl Random for ScriptedRandom {
    fn unit(&self) -> f64 {
        let mut numbers = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if numbers.len() > 1 { numbers.pop().unwrap_or(0.5) } else { numbers.last().copied().unwrap_or(0.5) }
    }
}
