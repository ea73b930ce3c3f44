//! Verdicts: what a handler's result means.

use crate::outcome::{Disposition, ErrorText, Handoff, Reason};
use crate::retry::Retry;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What handling decided. Ending a message is a value, not a magic error.
#[derive(Debug)]
pub struct Verdict {
    kind: VerdictKind,
    reason: Option<Reason>,
    error: Option<ErrorText>,
    failure: Option<HandlerError>,
}

/// The kinds of verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerdictKind {
    /// Done.
    Complete,
    /// Try again, as the retry policy says, but not before this delay.
    Retry(Option<Duration>),
    /// Give up.
    DeadLetter,
    /// End it unhandled, on purpose.
    Skip,
    /// Wait for work elsewhere.
    Suspend(Handoff),
}

impl Verdict {
    fn new(kind: VerdictKind, text: Option<&str>) -> Self {
        let reason = Some(Reason::HandlerChoice);
        Self { kind, reason, error: text.map(ErrorText::new), failure: None }
    }

    /// Done.
    pub fn complete() -> Self {
        Self { kind: VerdictKind::Complete, reason: None, error: None, failure: None }
    }

    /// Try again, not before `delay`. Counts as an attempt: when none is left the message is dead-lettered.
    pub fn retry_after(delay: Duration, why: impl AsRef<str>) -> Self {
        Self::new(VerdictKind::Retry(Some(delay)), Some(why.as_ref()))
    }

    /// Give up at once and leave the message to an operator.
    pub fn dead_letter(why: impl AsRef<str>) -> Self {
        Self::new(VerdictKind::DeadLetter, Some(why.as_ref()))
    }

    /// End the message unhandled, on purpose.
    pub fn skip(why: impl AsRef<str>) -> Self {
        Self::new(VerdictKind::Skip, Some(why.as_ref()))
    }

    /// Replaces the reason.
    pub fn because(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// What was decided.
    pub fn kind(&self) -> &VerdictKind {
        &self.kind
    }

    /// Why, if it is not a plain success.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The text for operators.
    pub fn error(&self) -> Option<&ErrorText> {
        self.error.as_ref()
    }

    /// The handler's failure, if it ended with one: for a classifier.
    pub fn failure(&self) -> Option<&HandlerError> {
        self.failure.as_ref()
    }

    /// Classes the failure anew. A verdict that is no failure stays as it is.
    pub fn reclass(self, class: ErrorClass) -> Self {
        match self.failure {
            Some(failure) => failure.classed(class).into(),
            None => self,
        }
    }

    /// Whether the message is handled.
    pub fn is_complete(&self) -> bool {
        self.kind == VerdictKind::Complete
    }
}

impl From<Handoff> for Verdict {
    fn from(handoff: Handoff) -> Self {
        Self { kind: VerdictKind::Suspend(handoff), reason: None, error: None, failure: None }
    }
}

impl From<HandlerError> for Verdict {
    fn from(error: HandlerError) -> Self {
        let (kind, reason) = match error.class {
            ErrorClass::Retryable => (VerdictKind::Retry(error.retry_after), Reason::Failed),
            ErrorClass::Permanent => (VerdictKind::DeadLetter, Reason::Permanent),
            ErrorClass::Discard => (VerdictKind::Skip, Reason::Discarded),
        };
        let text = ErrorText::of(error.source.as_ref());
        Self { kind, reason: Some(error.reason.unwrap_or(reason)), error: Some(text), failure: Some(error) }
    }
}

/// What a handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a handler",
    label = "not a verdict",
    note = "return `()`, a `Verdict`, a `Handoff`, or a `Result` of one of them"
)]
pub trait IntoVerdict {
    /// What it means.
    fn into_verdict(self) -> Verdict;
}

impl IntoVerdict for () {
    fn into_verdict(self) -> Verdict {
        Verdict::complete()
    }
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Verdict {
        self
    }
}

impl IntoVerdict for Handoff {
    fn into_verdict(self) -> Verdict {
        self.into()
    }
}

impl<T: IntoVerdict, E: Into<HandlerError>> IntoVerdict for Result<T, E> {
    fn into_verdict(self) -> Verdict {
        self.map_or_else(|error| Verdict::from(error.into()), IntoVerdict::into_verdict)
    }
}

/// What kind of failure an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// It may pass: try again.
    Retryable,
    /// It will not pass: dead-letter at once.
    Permanent,
    /// The message does not matter any more: skip it.
    Discard,
}

/// A handler's failure. Every error converts into one by `?` and is then retryable; a time-out inside a handler is an
/// error like any other.
pub struct HandlerError {
    class: ErrorClass,
    retry_after: Option<Duration>,
    reason: Option<Reason>,
    source: BoxError,
}

impl HandlerError {
    fn new(class: ErrorClass, error: impl Into<BoxError>) -> Self {
        Self { class, retry_after: None, reason: None, source: error.into() }
    }

    /// It may pass: try again.
    pub fn retryable(error: impl Into<BoxError>) -> Self {
        Self::new(ErrorClass::Retryable, error)
    }

    /// It will not pass: dead-letter at once.
    pub fn permanent(error: impl Into<BoxError>) -> Self {
        Self::new(ErrorClass::Permanent, error)
    }

    /// The message does not matter any more: skip it.
    pub fn discard(error: impl Into<BoxError>) -> Self {
        Self::new(ErrorClass::Discard, error)
    }

    /// Waits at least this long before the next attempt.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Names a more exact reason.
    pub fn reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// What kind of failure it is.
    pub fn class(&self) -> ErrorClass {
        self.class
    }

    /// Changes the kind: for a classifier.
    pub fn classed(mut self, class: ErrorClass) -> Self {
        self.class = class;
        self
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.source.as_ref()
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} error: {}", self.class, ErrorText::of(self.source.as_ref()))
    }
}

impl<E: Into<BoxError>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retryable(error)
    }
}

/// Turns a verdict into what the store does: the rule behind every settlement.
///
/// `number` is the attempt that ended, from 1; `unit` a random number from 0 to 1 for jitter.
pub fn decide(verdict: Verdict, number: u32, retry: &Retry, unit: f64) -> (Disposition, Option<ErrorText>) {
    let Verdict { kind, reason, error, failure: _ } = verdict;
    let disposition = match kind {
        VerdictKind::Complete => Disposition::Complete,
        VerdictKind::DeadLetter => Disposition::DeadLetter { reason: reason.unwrap_or(Reason::Permanent) },
        VerdictKind::Skip => Disposition::Skip { reason: reason.unwrap_or(Reason::HandlerChoice) },
        VerdictKind::Suspend(handoff) => match handoff.check() {
            Ok(()) => Disposition::Suspend(handoff),
            Err(refused) => {
                return (
                    Disposition::DeadLetter { reason: Reason::Permanent },
                    Some(ErrorText::of(&refused)),
                );
            }
        },
        VerdictKind::Retry(retry_after) => match retry.next(number, retry_after, unit) {
            Some(after) => Disposition::Retry { after, reason: reason.unwrap_or(Reason::Failed) },
            None => Disposition::DeadLetter { reason: Reason::AttemptsExhausted },
        },
    };
    (disposition, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(result: impl IntoVerdict, number: u32) -> Disposition {
        let retry = Retry::fixed(Duration::from_secs(1)).jitter(false).max_attempts(3);
        decide(result.into_verdict(), number, &retry, 0.5).0
    }

    #[test]
    fn results_mean_what_they_say() {
        let after = Duration::from_secs(1);
        let io = || std::io::Error::other("down");
        assert_eq!(outcome((), 1), Disposition::Complete);
        assert_eq!(outcome(Ok::<(), HandlerError>(()), 1), Disposition::Complete);
        assert_eq!(outcome(Err::<(), _>(io()), 1), Disposition::Retry { after, reason: Reason::Failed });
        let exhausted = Disposition::DeadLetter { reason: Reason::AttemptsExhausted };
        assert_eq!(outcome(Err::<(), _>(io()), 3), exhausted);
        let permanent = Disposition::DeadLetter { reason: Reason::Permanent };
        assert_eq!(outcome(Err::<(), _>(HandlerError::permanent(io())), 1), permanent);
        let discarded = Disposition::Skip { reason: Reason::Discarded };
        assert_eq!(outcome(Err::<(), _>(HandlerError::discard("old")), 1), discarded);
        let hour = Duration::from_secs(3600);
        let later = Disposition::Retry { after: hour, reason: Reason::HandlerChoice };
        assert_eq!(outcome(Verdict::retry_after(hour, "closed on sundays"), 1), later);
        assert_eq!(
            outcome(Verdict::skip("not ours"), 1),
            Disposition::Skip { reason: Reason::HandlerChoice }
        );
        assert!(matches!(outcome(Handoff::new("bank").unwrap(), 1), Disposition::Suspend(_)));
    }

    #[test]
    fn a_handoff_that_cannot_be_stored_is_dead_lettered_not_retried_for_ever() {
        let handoff = Handoff::new("bank").unwrap().external_job_id("a\0b");
        assert_eq!(outcome(handoff, 1), Disposition::DeadLetter { reason: Reason::Permanent });
    }

    #[test]
    fn any_error_converts_by_question_mark() {
        fn handler() -> Result<(), HandlerError> {
            let _: u32 = "x".parse()?;
            Err("text")?;
            Ok(())
        }
        assert_eq!(handler().unwrap_err().class(), ErrorClass::Retryable);
    }
}
