//! Waiting for what a server does not tell us of.

use crate::error::ServerError;
use std::time::{Duration, Instant};

/// How often is looked: often enough that nobody waits for it, seldom enough to leave the server its processor.
const INTERVAL: Duration = Duration::from_millis(10);

/// Asks until the answer is yes, an error comes, or the time is over.
pub(crate) fn wait_until(
    what: &str,
    time_max: Duration,
    mut is_done: impl FnMut() -> Result<bool, ServerError>,
) -> Result<(), ServerError> {
    let begun = Instant::now();
    while !is_done()? {
        if begun.elapsed() > time_max {
            return Err(ServerError::new(format!("failed to {what} within {} s", time_max.as_secs())));
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_until_the_answer_is_yes() {
        let mut left = 3;
        let result = wait_until("count", Duration::from_secs(60), || {
            left -= 1;
            Ok(left == 0)
        });
        assert!(result.is_ok());
        assert_eq!(left, 0);
    }

    #[test]
    fn it_gives_up_when_the_time_is_over() {
        let error = wait_until("count", Duration::ZERO, || Ok(false)).unwrap_err();
        assert_eq!(error.to_string(), "failed to count within 0 s");
    }
}
