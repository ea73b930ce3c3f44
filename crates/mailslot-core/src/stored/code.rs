//! The numbers that stand for words. They are in the files and tables of users: none may ever change its meaning.

use crate::metadata::KeyPolicy;
use crate::outcome::OutcomeKind;

/// The stored form of a kind of outcome. The order of the numbers is that in which things happen to one attempt, so
/// a history in the order of its key is in the order of time.
pub fn code_of_kind(kind: OutcomeKind) -> i64 {
    match kind {
        OutcomeKind::Retried => 1,
        OutcomeKind::Expired => 2,
        OutcomeKind::Suspended => 3,
        OutcomeKind::Completed => 4,
        OutcomeKind::Skipped => 5,
        OutcomeKind::DeadLettered => 6,
        OutcomeKind::Cancelled => 7,
        OutcomeKind::Requeued => 8,
    }
}

/// The kind of outcome that is stored as `code`, if there is one.
pub fn kind_of_code(code: i64) -> Option<OutcomeKind> {
    OutcomeKind::ALL.iter().copied().find(|kind| code_of_kind(*kind) == code)
}

/// The stored form of a key's policy.
pub fn code_of_policy(policy: KeyPolicy) -> i64 {
    match policy {
        KeyPolicy::Retained => 0,
        KeyPolicy::UntilFinished => UNTIL_FINISHED,
        KeyPolicy::UntilStarted => UNTIL_STARTED,
    }
}

/// The stored form of [`KeyPolicy::UntilFinished`].
pub const UNTIL_FINISHED: i64 = 1;

/// The stored form of [`KeyPolicy::UntilStarted`].
pub const UNTIL_STARTED: i64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_number_of_its_own() {
        for kind in OutcomeKind::ALL {
            assert_eq!(kind_of_code(code_of_kind(*kind)), Some(*kind));
        }
        assert_eq!((kind_of_code(0), kind_of_code(9)), (None, None));
    }
}
