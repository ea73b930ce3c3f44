//! The invariants of stored data that stores with tables have in common: what is said when one does not hold.

use super::operator::Violation;

/// An invariant. The store has a statement that counts what breaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariant {
    /// Its short name.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// What usually breaks it.
    pub cause: &'static str,
    /// How to mend it.
    pub repair: &'static str,
    /// Whether the store can mend it.
    pub repairable: bool,
}

impl Invariant {
    /// What is to be said if `count` things break it, of which `first` is one.
    pub fn violation(&self, count: i64, first: Option<&str>) -> Option<Violation> {
        (count > 0).then(|| Violation {
            invariant: self.name,
            found: format!("{count} {}, first: {}", self.unit, first.unwrap_or_default()),
            cause: self.cause,
            repair: self.repair,
            repairable: self.repairable,
        })
    }

    const fn broken_by_hand(name: &'static str, unit: &'static str) -> Self {
        const CAUSE: &str = "rows were changed by hand or by another program, or a defect of this store";
        const REPAIR: &str =
            "stop the workers and restore a backup, or purge these messages and accept them again";
        Self { name, unit, cause: CAUSE, repair: REPAIR, repairable: false }
    }

    const fn repair(self, repair: &'static str) -> Self {
        Self { repair, ..self }
    }

    const fn cause(self, cause: &'static str) -> Self {
        Self { cause, ..self }
    }

    const fn repairable(self) -> Self {
        Self { repairable: true, ..self }
    }

    /// Every message is in exactly one place.
    pub const ONE_PLACE: Self =
        Self::broken_by_hand("one_place", "messages that are in no place or in several");

    /// Every place, outcome and ledger record has a message.
    pub const PLACE_OF_NOTHING: Self =
        Self::broken_by_hand("place_of_nothing", "places, outcomes or ledger records without a message")
            .cause("messages were deleted by hand instead of being purged")
            .repair("pending ones are dead-lettered when they are claimed; delete the other rows by hand");

    /// Every leased message has a lease.
    pub const MEMBER_HAS_LEASE: Self =
        Self::broken_by_hand("member_without_lease", "leased messages without a lease")
            .repair("run the repair: they become pending again, and the attempt counts as expired")
            .repairable();

    /// Every session has a head that holds it.
    pub const SESSION_HAS_HEAD: Self =
        Self::broken_by_hand("session_without_head", "sessions whose head has ended or is elsewhere")
            .repair("restore a backup, or purge the messages of these sessions and accept them again");

    /// Only the head of a session is in flight.
    pub const ONE_IN_FLIGHT: Self =
        Self::broken_by_hand("one_in_flight", "messages in flight that are not the head of their session");

    /// Every parked message waits behind an earlier head.
    pub const PARKED_WAITS: Self =
        Self::broken_by_hand("parked_waits", "parked messages without an earlier head")
            .repair("purge these messages and accept them again");

    /// The end of a message is its last outcome.
    pub const END_IS_LAST: Self =
        Self::broken_by_hand("end_is_last", "messages whose end is not their last outcome");

    /// Every value can be read.
    pub const READABLE: Self = Self::broken_by_hand("readable", "messages with a value that cannot be read")
        .cause("rows were changed by hand, or the disk damaged them")
        .repair("leave them: a claim dead-letters them as undecodable; or purge them");

    /// What a place repeats of its message is the same there.
    pub const COPIES: Self = Self::broken_by_hand("copies", "messages whose place disagrees with them");

    /// The counters count what is there.
    pub const COUNTS: Self = Self::broken_by_hand("counts", "counters that are wrong")
        .repair("run the repair: it counts anew")
        .repairable();
}
