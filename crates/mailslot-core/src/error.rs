//! The error of every store: what happened, whether to try again, where, and why.

use crate::field::FieldError;
use std::error::Error;
use std::fmt;

/// A store could not do what it was asked. Nothing of the call took effect, unless the kind says otherwise.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    detail: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store cannot be reached, or the connection broke. The call may have taken effect.
    Unavailable,
    /// Another writer was in the way for too long.
    Busy,
    /// The store refuses writes: read-only, or its disk is full.
    NotWritable,
    /// The schema is missing, older, newer or not ours.
    Schema,
    /// A stored row cannot be read. It is reported and left alone; it stops nothing else.
    Corrupt,
    /// The request passes a bound or names something that cannot be.
    Invalid,
    /// Something that this version does not know.
    Unexpected,
}

impl StoreErrorKind {
    /// Whether the same call may succeed later without anyone doing anything.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Unavailable | Self::Busy)
    }
}

impl StoreError {
    /// An error of `kind` in `operation`; `detail` says what and how to mend it, without any payload.
    pub fn new(kind: StoreErrorKind, operation: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, operation, detail: detail.into(), source: None }
    }

    /// An error that this version does not know.
    pub fn unexpected(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(StoreErrorKind::Unexpected, operation, "something unforeseen happened").because(source)
    }

    /// Names the cause.
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What happened.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later without anyone doing anything.
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }

    /// What happened and what to do, for a person.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The store method that failed.
    pub fn operation(&self) -> &'static str {
        self.operation
    }
}

impl From<FieldError> for StoreError {
    fn from(error: FieldError) -> Self {
        Self::new(StoreErrorKind::Invalid, "validate", error.to_string())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.detail)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
