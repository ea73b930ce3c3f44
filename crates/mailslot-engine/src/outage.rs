//! What a loop says while its store fails: once that it is away and why, now and then for how long, and once that it is
//! back. A log that repeats itself at every try is a log that nobody reads.

use mailslot_core::{StoreError, StoreErrorKind};
use std::time::Duration;
use tokio::time::Instant;

/// How often a loop says again that its store is still away.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// How often in a row another writer may be in the way before it is worth a word: that happens and passes.
const RACES: u32 = 3;

/// The failures in a row of one loop.
#[derive(Debug)]
pub(crate) struct Outage {
    /// What cannot be done meanwhile.
    waits: &'static str,
    failures: u32,
    since: Instant,
    said: Option<Instant>,
    worked: Option<Instant>,
}

impl Outage {
    pub(crate) fn new(waits: &'static str) -> Self {
        Self { waits, failures: 0, since: Instant::now(), said: None, worked: None }
    }

    /// Whether a call that began then and failed says more than the last one that did not: for loops with several calls
    /// at once.
    pub(crate) fn is_news(&self, begun: Instant) -> bool {
        self.worked.is_none_or(|worked| begun >= worked)
    }

    /// The store failed; the loop tries again after `wait`.
    pub(crate) fn failed(&mut self, error: &StoreError, wait: Duration) {
        let now = Instant::now();
        if self.failures == 0 {
            self.since = now;
        }
        self.failures += 1;
        let (waits, away) = (self.waits, now - self.since);
        if !self.is_worth_a_word(error, now) {
            return tracing::debug!(%error, waits, ?wait, ?away, "the store failed; trying again");
        }
        self.said = Some(now);
        tracing::warn!(%error, waits, ?wait, ?away, "the store is away; trying until it is back");
    }

    fn is_worth_a_word(&self, error: &StoreError, now: Instant) -> bool {
        let is_race = error.kind() == StoreErrorKind::Busy && self.failures <= RACES;
        !is_race && self.said.is_none_or(|said| said + SAY_EVERY <= now)
    }

    /// The store did what it was asked.
    pub(crate) fn worked(&mut self) {
        self.failures = 0;
        self.worked = Some(Instant::now());
        if self.said.take().is_some() {
            tracing::info!(waits = self.waits, away = ?self.since.elapsed(), "the store is back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: StoreErrorKind) -> StoreError {
        StoreError::new(kind, "exchange", "a test says so")
    }

    fn fail(outage: &mut Outage, kind: StoreErrorKind) -> Option<Instant> {
        outage.failed(&error(kind), Duration::ZERO);
        outage.said
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_told_at_once_and_then_once_a_minute_until_it_ends() {
        let mut outage = Outage::new("work");
        let begun = Instant::now();
        assert_eq!(fail(&mut outage, StoreErrorKind::Unavailable), Some(begun));
        tokio::time::advance(SAY_EVERY / 2).await;
        assert_eq!(fail(&mut outage, StoreErrorKind::NotWritable), Some(begun));
        tokio::time::advance(SAY_EVERY / 2).await;
        assert_eq!(fail(&mut outage, StoreErrorKind::Unavailable), Some(begun + SAY_EVERY));
        outage.worked();
        assert_eq!((outage.said, outage.failures), (None, 0));
        assert_eq!(fail(&mut outage, StoreErrorKind::Unavailable), Some(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_from_before_the_end_of_an_outage_is_no_news() {
        let mut outage = Outage::new("work");
        let begun = Instant::now();
        assert!(outage.is_news(begun));
        tokio::time::advance(Duration::from_secs(1)).await;
        outage.worked();
        assert!(!outage.is_news(begun) && outage.is_news(Instant::now()));
    }

    #[tokio::test]
    async fn a_race_is_worth_no_word_unless_it_goes_on() {
        let mut outage = Outage::new("work");
        for _ in 0..RACES {
            assert_eq!(fail(&mut outage, StoreErrorKind::Busy), None);
        }
        assert!(fail(&mut outage, StoreErrorKind::Busy).is_some());
        outage.worked();
        assert_eq!(fail(&mut outage, StoreErrorKind::Busy), None);
    }
}
