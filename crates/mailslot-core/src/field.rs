//! The error for a value that cannot be accepted: which field, what is wrong, how to mend it.

use std::fmt;

/// A value that was refused before anything was stored.
///
/// Its text names the field, the problem and the fix. It never contains the value, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    field: &'static str,
    problem: String,
    fix: String,
}

impl FieldError {
    /// Says that `field` has `problem`, and how to `fix` it. Both are fragments without a full stop.
    pub fn new(field: &'static str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), fix: fix.into() }
    }

    /// The name of the refused field, as the API spells it.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// What to do about it.
    pub fn fix(&self) -> &str {
        &self.fix
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}: {}", self.field, self.problem, self.fix)
    }
}

impl std::error::Error for FieldError {}
