//! What became of an attempt: the verdict as a store takes it, and the record that it keeps.

use crate::id::Attempt;
use crate::limits::{ERROR_BYTES_MAX, NAME_UNITS_MAX};
use crate::name::check_text;
use crate::state::{Status, labels};
use crate::{FieldError, LeaseToken, Seq};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What handling decided, in the terms of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The handler succeeded.
    Complete,
    /// Try again after a delay, counted by the store's clock.
    Retry {
        /// How long to wait.
        after: Duration,
        /// Why it failed.
        reason: Reason,
    },
    /// Give up.
    DeadLetter {
        /// Why.
        reason: Reason,
    },
    /// End it without handling.
    Skip {
        /// Why.
        reason: Reason,
    },
    /// The handler started work elsewhere.
    Suspend(Handoff),
    /// Give it back as if it had never been leased.
    Release,
}

/// A verdict on one leased message, under its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The lease under which it was handled.
    pub lease: LeaseToken,
    /// The message.
    pub seq: Seq,
    /// The attempt that ended.
    pub attempt: Attempt,
    /// What was decided.
    pub disposition: Disposition,
    /// The error behind it, for operators.
    pub error: Option<ErrorText>,
}

/// Work that goes on elsewhere while its message is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Why the message waits, for people. At most 512 UTF-16 units.
    pub reason: String,
    /// What the other system calls the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_job_id: Option<String>,
    /// When it should be settled; later it counts as overdue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_by: Option<Timestamp>,
}

impl Handoff {
    /// A handoff for `reason`.
    ///
    /// # Errors
    /// A blank or over-long reason.
    pub fn new(reason: impl Into<String>) -> Result<Self, FieldError> {
        let handoff = Self { reason: reason.into(), external_job_id: None, expected_by: None };
        handoff.check().map(|()| handoff)
    }

    /// Names the work in the other system.
    pub fn external_job_id(mut self, id: impl Into<String>) -> Self {
        self.external_job_id = Some(id.into());
        self
    }

    /// Says when it should be settled.
    pub fn expected_by(mut self, at: Timestamp) -> Self {
        self.expected_by = Some(at);
        self
    }

    /// Checks both texts.
    ///
    /// # Errors
    /// A blank, over-long or unprintable reason or job id.
    pub fn check(&self) -> Result<(), FieldError> {
        check_text("handoff.reason", &self.reason, NAME_UNITS_MAX)?;
        self.external_job_id
            .as_deref()
            .map_or(Ok(()), |id| check_text("handoff.external_job_id", id, NAME_UNITS_MAX))
    }
}

/// What became of one attempt or what an operator did, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// The attempt that it ended; for an operator's act, the last one before it.
    pub attempt: Attempt,
    /// What happened.
    pub kind: OutcomeKind,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The error behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorText>,
    /// When, by the store's clock.
    pub at: Timestamp,
}

/// The kinds of outcome that are recorded. A release is none: it leaves no trace but the next lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// An attempt failed and another one follows.
    Retried,
    /// A lease ran out: the worker died or stalled.
    Expired,
    /// The handler started work elsewhere.
    Suspended,
    /// An operator started a new generation.
    Requeued,
    /// The end: handled.
    Completed,
    /// The end: not handled, on purpose.
    Skipped,
    /// The end: given up.
    DeadLettered,
    /// The end: by request.
    Cancelled,
}

labels!(OutcomeKind, "outcome" {
    Retried => "retried", Expired => "expired", Suspended => "suspended", Requeued => "requeued",
    Completed => "completed", Skipped => "skipped", DeadLettered => "dead_lettered", Cancelled => "cancelled",
});

impl OutcomeKind {
    /// The terminal state that this outcome stands for, if it is one.
    pub fn end(self) -> Option<Status> {
        match self {
            Self::Completed => Some(Status::Completed),
            Self::Skipped => Some(Status::Skipped),
            Self::DeadLettered => Some(Status::DeadLettered),
            Self::Cancelled => Some(Status::Cancelled),
            Self::Retried | Self::Expired | Self::Suspended | Self::Requeued => None,
        }
    }

    /// The outcome that records the end in `status`, if it is terminal.
    pub fn of_end(status: Status) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.end() == Some(status))
    }
}

/// Why an attempt or a message ended as it did: a closed list, fit for a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The handler returned an error that may pass.
    Failed,
    /// The handler returned an error and no attempt is left.
    AttemptsExhausted,
    /// The handler returned an error that will not pass.
    Permanent,
    /// The handler ran past its time limit.
    TimedOut,
    /// The handler panicked.
    Panicked,
    /// The payload does not decode as its contract.
    Undecodable,
    /// Its workers died until no attempt was left.
    Crashed,
    /// The worker's lease ran out.
    LeaseExpired,
    /// A hook failed.
    HookFailed,
    /// A hook vetoed the dispatch.
    Vetoed,
    /// The handler returned an error that asks to drop the message.
    Discarded,
    /// The handler chose this verdict itself.
    HandlerChoice,
    /// The work handed to another system failed there.
    HandoffFailed,
    /// An operator, or the program through the operator API.
    Operator,
    /// The subscriber of the endpoint has no handler for the contract.
    Unsupported,
    /// The delivery was handled before.
    DuplicateDetected,
}

labels!(Reason, "reason" {
    Failed => "failed", AttemptsExhausted => "attempts_exhausted", Permanent => "permanent", TimedOut => "timed_out",
    Panicked => "panicked", Undecodable => "undecodable", Crashed => "crashed", LeaseExpired => "lease_expired",
    HookFailed => "hook_failed", Vetoed => "vetoed", Discarded => "discarded", HandlerChoice => "handler_choice",
    HandoffFailed => "handoff_failed", Operator => "operator", Unsupported => "unsupported",
    DuplicateDetected => "duplicate_detected",
});

/// An error's text, fit for every store: bounded, valid UTF-8, without control characters but line breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ErrorText(String);

impl ErrorText {
    const CUT: &'static str = " (cut)";

    /// Keeps `text` as far as it fits. Never fails: an error must never make a message stick.
    ///
    /// What was kept once is kept again unchanged, so a store may read its own text back through here.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let clean =
            |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
        let mut out = String::with_capacity(text.len().min(ERROR_BYTES_MAX));
        for c in text.chars().map(clean) {
            if out.len() + c.len_utf8() > ERROR_BYTES_MAX {
                out.truncate(out.floor_char_boundary(ERROR_BYTES_MAX - Self::CUT.len()));
                out.push_str(Self::CUT);
                break;
            }
            out.push(c);
        }
        Self(out)
    }

    /// Keeps bytes that may not be UTF-8, such as a program's output.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(String::from_utf8_lossy(bytes))
    }

    /// An error with its causes, joined by colons.
    pub fn of(error: &(dyn std::error::Error + '_)) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Many errors repeat their cause in their own text.
            if !text.ends_with(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        Self::new(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ErrorText {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<ErrorText> for String {
    fn from(text: ErrorText) -> String {
        text.0
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a settlement does to the message: the rule behind every store's settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It goes back to pending.
    Return {
        /// How long until it is due.
        after: Duration,
        /// Whether the lease counts as never taken.
        give_back: bool,
        /// What is recorded, if anything.
        record: Option<(OutcomeKind, Reason)>,
    },
    /// It waits for its handoff.
    Suspend(Handoff),
    /// It ends.
    End {
        /// The terminal state.
        status: Status,
        /// Why; none for a plain success.
        reason: Option<Reason>,
    },
}

impl Disposition {
    /// The effect on a leased message. A requested cancel takes whatever would leave the message unfinished, and
    /// never a verdict that ended it.
    pub fn effect(&self, cancel_requested: bool) -> Effect {
        let cancelled = Effect::End { status: Status::Cancelled, reason: Some(Reason::Operator) };
        match self {
            Self::Complete => Effect::End { status: Status::Completed, reason: None },
            Self::Skip { reason } => Effect::End { status: Status::Skipped, reason: Some(*reason) },
            Self::DeadLetter { reason } => {
                Effect::End { status: Status::DeadLettered, reason: Some(*reason) }
            }
            Self::Retry { .. } | Self::Release | Self::Suspend(_) if cancel_requested => cancelled,
            Self::Retry { after, reason } => Effect::Return {
                after: *after,
                give_back: false,
                record: Some((OutcomeKind::Retried, *reason)),
            },
            Self::Release => Effect::Return { after: Duration::ZERO, give_back: true, record: None },
            Self::Suspend(handoff) => Effect::Suspend(handoff.clone()),
        }
    }
}

/// The effect of a lease that ran out: see [`Disposition::effect`] for the cancel rule.
pub fn effect_of_expiry(cancel_requested: bool) -> Effect {
    if cancel_requested {
        return Effect::End { status: Status::Cancelled, reason: Some(Reason::Operator) };
    }
    let record = Some((OutcomeKind::Expired, Reason::LeaseExpired));
    Effect::Return { after: Duration::ZERO, give_back: false, record }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_takes_only_what_is_unfinished() {
        let retry = Disposition::Retry { after: Duration::from_secs(5), reason: Reason::Failed };
        let handoff = Handoff::new("waits for the bank").unwrap();
        let unfinished = [retry, Disposition::Release, Disposition::Suspend(handoff)];
        for disposition in &unfinished {
            assert!(matches!(disposition.effect(true), Effect::End { status: Status::Cancelled, .. }));
            assert!(!matches!(disposition.effect(false), Effect::End { .. }));
        }
        let ended = [
            Disposition::Complete,
            Disposition::Skip { reason: Reason::Vetoed },
            Disposition::DeadLetter { reason: Reason::Permanent },
        ];
        for disposition in &ended {
            assert_eq!(disposition.effect(true), disposition.effect(false));
        }
    }

    #[test]
    fn error_text_is_always_storable() {
        assert_eq!(ErrorText::new("a\0b\u{7}c\n").as_str(), "a\u{fffd}b\u{fffd}c\n");
        assert_eq!(ErrorText::from_bytes(b"\xff\xfe").as_str(), "\u{fffd}\u{fffd}");
        let long = ErrorText::new("\u{1f600}".repeat(5000));
        assert!(long.as_str().len() <= ERROR_BYTES_MAX && long.as_str().ends_with(" (cut)"));
        assert_eq!(ErrorText::new(long.as_str()), long);
        let fits = "x".repeat(ERROR_BYTES_MAX);
        assert_eq!(ErrorText::new(&fits).as_str(), fits);
    }

    #[test]
    fn error_text_names_each_cause_once() {
        let inner = std::io::Error::other("disk on fire");
        let outer = crate::StoreError::unexpected("append", inner);
        assert_eq!(ErrorText::of(&outer).as_str().matches("disk on fire").count(), 1);
    }
}
