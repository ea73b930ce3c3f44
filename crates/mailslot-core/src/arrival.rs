//! What becomes of a delivery that arrives: the one table of what a subscriber does before and after its handler.

use crate::id::MessageId;
use crate::state::Status;
use crate::store::{Concluded, Known, Lookup};
use jiff::Timestamp;

/// What is to be done with a delivery that arrived, by what is known of it and of its session.
///
/// The delivery itself is looked at before its session: a redelivery of what was handled is a duplicate however its session
/// stands by now, and one of what was stored is never handled a second time by the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing is known of it, and nothing is before it: its handler runs.
    Handle,
    /// Nothing is known of it, and its session waits for an earlier message: it is stored behind that.
    Park {
        /// The message that the session waits for.
        behind: MessageId,
    },
    /// It was handled: it is skipped.
    Duplicate,
    /// It was stored and has not been handled. What becomes of it is decided there; the broker's copy is done with.
    Stored {
        /// The stored message.
        id: MessageId,
        /// Where it stands.
        status: Status,
    },
    /// Somebody handles it at present: the broker is to deliver it again, if that one fails.
    GiveBack {
        /// Until when the other one has it, by the store's clock.
        until: Timestamp,
    },
}

impl Arrival {
    /// By what was looked up.
    pub fn of(lookup: &Lookup) -> Self {
        match (lookup.known, lookup.blocked_by) {
            (Some(known), _) => Self::of_known(known),
            (None, Some(behind)) => Self::Park { behind },
            (None, None) => Self::Handle,
        }
    }

    /// By what the delivery has come to, before or meanwhile.
    pub fn of_known(known: Known) -> Self {
        match known {
            Known::Completed | Known::Stored { status: Status::Completed, .. } => Self::Duplicate,
            Known::Stored { id, status } => Self::Stored { id, status },
            Known::Claimed { until } => Self::GiveBack { until },
        }
    }
}

/// How a subscriber leaves a delivery to its broker, after its conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipted {
    /// It is handled, and known as that.
    Recorded,
    /// It is stored.
    Stored {
        /// The stored message.
        id: MessageId,
        /// Where it stands.
        status: Status,
    },
    /// Somebody else was faster.
    Overtaken(Arrival),
    /// Too many messages wait in its session: the broker has to keep it for now.
    SessionFull,
}

impl From<Concluded> for Receipted {
    fn from(concluded: Concluded) -> Self {
        match concluded {
            Concluded::Recorded => Self::Recorded,
            Concluded::Stored { id, status } => Self::Stored { id, status },
            Concluded::Known(known) => Self::Overtaken(Arrival::of_known(known)),
            Concluded::SessionFull => Self::SessionFull,
        }
    }
}

impl Receipted {
    /// Whether the broker's copy is done with: everything that a crash could lose is in the store.
    pub fn is_final(self) -> bool {
        match self {
            Self::Recorded | Self::Stored { .. } => true,
            Self::Overtaken(arrival) => matches!(arrival, Arrival::Duplicate | Arrival::Stored { .. }),
            Self::SessionFull => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKERS: [bool; 2] = [false, true];

    fn lookups(known: Option<Known>, id: MessageId) -> impl Iterator<Item = (Lookup, bool)> {
        BLOCKERS
            .into_iter()
            .map(move |blocked| (Lookup { known, blocked_by: blocked.then_some(id) }, blocked))
    }

    #[test]
    fn what_is_new_is_handled_or_parked_by_its_session_alone() {
        let id = MessageId::generate();
        for (lookup, blocked) in lookups(None, id) {
            let expected = if blocked { Arrival::Park { behind: id } } else { Arrival::Handle };
            assert_eq!(Arrival::of(&lookup), expected);
        }
    }

    #[test]
    fn what_is_known_never_reaches_a_handler_and_its_session_does_not_matter() {
        let (id, until) = (MessageId::generate(), Timestamp::UNIX_EPOCH);
        let stored = Status::ALL.iter().map(|&status| {
            let expected = match status {
                Status::Completed => Arrival::Duplicate,
                _ => Arrival::Stored { id, status },
            };
            (Known::Stored { id, status }, expected)
        });
        let others =
            [(Known::Completed, Arrival::Duplicate), (Known::Claimed { until }, Arrival::GiveBack { until })];
        for (known, expected) in stored.chain(others) {
            for (lookup, _) in lookups(Some(known), MessageId::generate()) {
                assert_eq!(Arrival::of(&lookup), expected, "{known:?}");
            }
        }
    }

    #[test]
    fn the_broker_keeps_only_what_is_nowhere_else() {
        let (id, until) = (MessageId::generate(), Timestamp::UNIX_EPOCH);
        let table = [
            (Concluded::Recorded, true),
            (Concluded::Stored { id, status: Status::Parked }, true),
            (Concluded::Known(Known::Completed), true),
            (Concluded::Known(Known::Stored { id, status: Status::Suspended }), true),
            (Concluded::Known(Known::Claimed { until }), false),
            (Concluded::SessionFull, false),
        ];
        for (concluded, is_final) in table {
            assert_eq!(Receipted::from(concluded.clone()).is_final(), is_final, "{concluded:?}");
        }
    }
}
