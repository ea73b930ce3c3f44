//! Times as they are stored: whole microseconds.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Microseconds since 1970, as every time is stored. A part of one is rounded up: nothing becomes due too early.
pub fn micros(at: Timestamp) -> i64 {
    // The calendar ends within a second of which no microseconds can be read back.
    let last = Timestamp::MAX.as_second() * 1_000_000;
    let whole = at.as_microsecond();
    let rest = at.as_nanosecond() - i128::from(whole) * 1000;
    (if rest > 0 { whole + 1 } else { whole }).min(last)
}

/// The instant of so many microseconds since 1970; the end of the calendar for what lies outside of it.
pub fn instant(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// For how long something waits at `now` that has been due since then; `None` if it is not due yet.
pub fn waiting_since(due_at: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    due_at.and_then(|due_at| Duration::try_from(now.duration_since(due_at)).ok())
}

/// `now` and so much more, but no later than the calendar's end.
pub fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// `now` and so much less, but no earlier than the calendar's beginning.
pub fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_microsecond_is_rounded_up() {
        let at = |nanos| Timestamp::from_nanosecond(nanos).unwrap();
        assert_eq!([at(1_000), at(1_001), at(1_999)].map(micros), [1, 2, 2]);
        assert_eq!([at(-1_000), at(-1_001), at(-1)].map(micros), [-1, -1, 0]);
    }

    #[test]
    fn the_ends_of_the_calendar_can_be_read_back() {
        for end in [Timestamp::MIN, Timestamp::MAX] {
            assert_eq!(micros(instant(micros(end))), micros(end));
        }
        assert_eq!(instant(i64::MAX), Timestamp::MAX);
        assert_eq!(later(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MIN);
    }
}
