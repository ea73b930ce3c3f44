//! The error of every broker.

use std::error::Error;
use std::fmt;

/// A broker could not do what it was asked.
#[derive(Debug)]
pub struct BrokerError {
    kind: BrokerErrorKind,
    operation: &'static str,
    detail: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BrokerErrorKind {
    /// The broker cannot be reached, or the connection broke.
    Unavailable,
    /// The destination does not exist or may not be used.
    Destination,
    /// The delivery is not this receiver's any more: it was settled, or handed out again.
    DeliveryLost,
    /// The message passes a bound of the broker.
    Invalid,
    /// Something that this version does not know.
    Unexpected,
}

impl BrokerError {
    /// An error of `kind` in `operation`; `detail` says what and how to mend it, without any payload.
    pub fn new(kind: BrokerErrorKind, operation: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, operation, detail: detail.into(), source: None }
    }

    /// Names the cause.
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What happened.
    pub fn kind(&self) -> BrokerErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later without anyone doing anything.
    pub fn is_transient(&self) -> bool {
        self.kind == BrokerErrorKind::Unavailable
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.detail)
    }
}

impl Error for BrokerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
