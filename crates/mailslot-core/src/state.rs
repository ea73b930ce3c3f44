//! The states of a stored message and the one table of how it moves between them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! labels {
    ($type:ident, $field:literal { $($variant:ident => $label:literal),+ $(,)? }) => {
        impl $type {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stored and printed form.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = crate::FieldError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($label => Ok(Self::$variant),)+
                    _ => {
                        let known: Vec<_> = Self::ALL.iter().map(|value| value.as_str()).collect();
                        let fix = format!("use one of {}", known.join(", "));
                        Err(crate::FieldError::new($field, "is unknown", fix))
                    }
                }
            }
        }
    };
}
pub(crate) use labels;

/// Where a stored message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for its due time or for a free worker. A failed attempt comes back here with its error.
    Pending,
    /// A worker holds it for a bounded time.
    Leased,
    /// Waits behind the head of its session.
    Parked,
    /// Waits for a handoff to be settled from outside.
    Suspended,
    /// Handled.
    Completed,
    /// Ended without being handled, on purpose.
    Skipped,
    /// Ended without success; an operator decides.
    DeadLettered,
    /// Ended by request.
    Cancelled,
}

labels!(Status, "status" {
    Pending => "pending", Leased => "leased", Parked => "parked", Suspended => "suspended",
    Completed => "completed", Skipped => "skipped", DeadLettered => "dead_lettered", Cancelled => "cancelled",
});

impl Status {
    /// Whether the message has ended. Only a requeue or an operator's skip leaves such a state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped | Self::DeadLettered | Self::Cancelled)
    }

    /// Where `event` leads from here, or `None` if it cannot happen here.
    pub fn on(self, event: Event) -> Option<Self> {
        TRANSITIONS.iter().find(|row| row.from == Some(self) && row.event == event).map(|row| row.to)
    }

    /// The states in which `event` can happen.
    pub fn sources_of(event: Event) -> impl Iterator<Item = Self> {
        TRANSITIONS.iter().filter(move |row| row.event == event).filter_map(|row| row.from)
    }

    /// What the end of a session's head in this state means for those that wait behind it.
    pub fn session_step(self) -> SessionStep {
        match self {
            Self::Completed | Self::Skipped | Self::Cancelled => SessionStep::Release,
            Self::Pending | Self::Leased | Self::Parked | Self::Suspended | Self::DeadLettered => {
                SessionStep::Hold
            }
        }
    }
}

/// What a session does after its head moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// The next parked message becomes the head; without one the session is forgotten.
    Release,
    /// The head stays the head: those behind it wait.
    Hold,
}

/// What can happen to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// It is accepted and nothing of its session is before it.
    Accept,
    /// It is accepted behind the head of its session.
    AcceptBehind,
    /// The head of its session ended.
    Unpark,
    /// A worker takes it.
    Lease,
    /// A worker would take it, but its attempts are used up: its workers crashed.
    Exhaust,
    /// The handler succeeded.
    Complete,
    /// The handler failed and the policy allows another attempt.
    Retry,
    /// The handler or the policy gave up.
    DeadLetter,
    /// The handler or a hook chose not to handle it; for a dead letter, an operator did.
    Skip,
    /// The handler started work elsewhere.
    Suspend,
    /// The work elsewhere succeeded.
    CompleteHandoff,
    /// The work elsewhere failed.
    FailHandoff,
    /// The worker gives it back unstarted.
    Release,
    /// The lease ran out.
    Expire,
    /// Someone asks for its end; of a leased message, the request is kept until the worker answers.
    Cancel,
    /// A leased message that someone asked to cancel comes back unfinished.
    CancelTakes,
    /// An operator tries a dead letter again.
    Requeue,
}

labels!(Event, "event" {
    Accept => "accept", AcceptBehind => "accept behind", Unpark => "unpark", Lease => "lease", Exhaust => "exhaust",
    Complete => "complete", Retry => "retry", DeadLetter => "dead-letter", Skip => "skip", Suspend => "suspend",
    CompleteHandoff => "complete handoff", FailHandoff => "fail handoff", Release => "release", Expire => "expire",
    Cancel => "cancel", CancelTakes => "cancel takes", Requeue => "requeue",
});

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Transition {
    /// What happens.
    pub event: Event,
    /// Where the message stands before; `None`: it does not exist yet.
    pub from: Option<Status>,
    /// Where it stands after.
    pub to: Status,
    /// What becomes of its attempt, its session and its key.
    pub effect: &'static str,
}

const fn row(event: Event, from: Option<Status>, to: Status, effect: &'static str) -> Transition {
    Transition { event, from, to, effect }
}

/// Every transition there is. What is not here cannot happen, in any store.
pub const TRANSITIONS: &[Transition] = {
    use Status::{Cancelled, Completed, DeadLettered, Leased, Parked, Pending, Skipped, Suspended};
    &[
        row(Event::Accept, None, Pending, "attempt 0; becomes the head of its session"),
        row(Event::AcceptBehind, None, Parked, "attempt 0; joins the end of its session"),
        row(Event::Unpark, Some(Parked), Pending, "becomes the head of its session; keeps its due time"),
        row(Event::Lease, Some(Pending), Leased, "attempt + 1; a key of policy until_started is freed"),
        row(Event::Exhaust, Some(Pending), DeadLettered, "reason crashed; its session is blocked"),
        row(
            Event::Complete,
            Some(Leased),
            Completed,
            "session released; a key of policy until_finished is freed",
        ),
        row(
            Event::Retry,
            Some(Leased),
            Pending,
            "error kept; due after the delay; stays the head of its session",
        ),
        row(Event::DeadLetter, Some(Leased), DeadLettered, "reason and error kept; its session is blocked"),
        row(Event::Skip, Some(Leased), Skipped, "session released; a key of policy until_finished is freed"),
        row(
            Event::Skip,
            Some(DeadLettered),
            Skipped,
            "new generation; session released; until_finished key freed",
        ),
        row(Event::Suspend, Some(Leased), Suspended, "stays the head of its session"),
        row(Event::CompleteHandoff, Some(Suspended), Completed, "session released; until_finished key freed"),
        row(
            Event::FailHandoff,
            Some(Suspended),
            DeadLettered,
            "reason handoff_failed; its session is blocked",
        ),
        row(
            Event::Release,
            Some(Leased),
            Pending,
            "attempt given back; due at once; stays the head of its session",
        ),
        row(
            Event::Expire,
            Some(Leased),
            Pending,
            "attempt stays used; due at once; stays the head of its session",
        ),
        row(Event::Cancel, Some(Pending), Cancelled, "session released; until_finished key freed"),
        row(Event::Cancel, Some(Parked), Cancelled, "leaves its session; until_finished key freed"),
        row(Event::Cancel, Some(Suspended), Cancelled, "session released; until_finished key freed"),
        row(Event::Cancel, Some(Leased), Leased, "the request reaches the worker with its next heartbeat"),
        row(Event::CancelTakes, Some(Leased), Cancelled, "session released; until_finished key freed"),
        row(
            Event::Requeue,
            Some(DeadLettered),
            Pending,
            "new generation, attempt 0; due at once; session unblocked",
        ),
    ]
};

/// The table as the Markdown of `docs/state-machine.md`.
pub fn state_machine_markdown() -> String {
    use fmt::Write as _;
    let mut out = String::from(
        "# The states of a message\n\n\
         Generated from `TRANSITIONS` in `mailslot-core` by `cargo xtask fix`; a test compares the two.\n\
         What is not listed cannot happen, in any store.\n\n\
         ```mermaid\nstateDiagram-v2\n",
    );
    for row in TRANSITIONS {
        let from = row.from.map_or("[*]", Status::as_str);
        let _ = writeln!(out, "    {from} --> {}: {}", row.to, row.event);
    }
    out.push_str("```\n\n| Event | From | To | Effect |\n|---|---|---|---|\n");
    for row in TRANSITIONS {
        let from = row.from.map_or("(new)", Status::as_str);
        let _ = writeln!(out, "| {} | {from} | {} | {} |", row.event, row.to, row.effect);
    }
    out.push_str("\nTerminal: ");
    let terminal: Vec<_> = Status::ALL.iter().filter(|s| s.is_terminal()).map(|s| format!("`{s}`")).collect();
    let _ = writeln!(
        out,
        "{}. Only `requeue` and an operator's `skip` leave one, each with a new generation.",
        terminal.join(", ")
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_event_has_at_most_one_answer() {
        for &event in Event::ALL {
            for from in Status::ALL.iter().copied().map(Some).chain([None]) {
                let rows = TRANSITIONS.iter().filter(|row| row.event == event && row.from == from).count();
                assert!(rows <= 1, "{event} from {from:?}");
            }
            assert!(TRANSITIONS.iter().any(|row| row.event == event), "{event} is never used");
        }
    }

    #[test]
    fn a_terminal_state_is_left_only_by_an_operator() {
        for row in TRANSITIONS.iter().filter(|row| row.from.is_some_and(Status::is_terminal)) {
            assert_eq!(row.from, Some(Status::DeadLettered), "{row:?}");
            assert!(matches!(row.event, Event::Requeue | Event::Skip), "{row:?}");
            assert!(row.effect.starts_with("new generation"), "{row:?}");
        }
    }

    #[test]
    fn every_state_can_end() {
        for &start in Status::ALL {
            let mut reached = vec![start];
            while let Some(row) = TRANSITIONS.iter().find(|row| {
                row.from.is_some_and(|from| reached.contains(&from)) && !reached.contains(&row.to)
            }) {
                reached.push(row.to);
            }
            assert!(reached.iter().any(|status| status.is_terminal()), "{start} is a trap");
        }
    }

    #[test]
    fn labels_round_trip() {
        for &status in Status::ALL {
            assert_eq!(status.as_str().parse::<Status>().unwrap(), status);
        }
        assert!("Pending".parse::<Status>().unwrap_err().fix().contains("dead_lettered"));
    }
}
