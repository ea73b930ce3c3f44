//! Durations, many of them.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Durations in microseconds.
pub type Latencies = Histogram<u64>;

/// The longest that is told apart, one minute.
const MAX_US: u64 = 60_000_000;

/// An empty record of durations: to a hundredth, up to a minute.
///
/// # Panics
/// Never: the bounds are valid.
pub fn latencies() -> Latencies {
    Latencies::new_with_max(MAX_US, 2).expect("the bounds are valid")
}

/// Adds a duration; longer ones than a minute count as one.
pub fn record(latencies: &mut Latencies, duration: Duration) {
    latencies.saturating_record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1));
}

/// A record as it travels from one process to another: how often each duration was found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spread(Vec<(u64, u64)>);

impl From<&Latencies> for Spread {
    fn from(latencies: &Latencies) -> Self {
        let found = latencies.iter_recorded();
        Self(found.map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect())
    }
}

impl From<&Spread> for Latencies {
    fn from(spread: &Spread) -> Self {
        let mut latencies = latencies();
        for &(duration, count) in &spread.0 {
            latencies.saturating_record_n(duration, count);
        }
        latencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way_to_another_process() {
        let mut sent = latencies();
        for ms in [1, 1, 20, 70_000] {
            record(&mut sent, Duration::from_millis(ms));
        }
        let text = serde_json::to_string(&Spread::from(&sent)).unwrap();
        let received = Latencies::from(&serde_json::from_str::<Spread>(&text).unwrap());
        assert_eq!(received, sent);
    }
}
