//! What a rule found.

use std::fmt;

/// A place that breaks a rule, and how to mend it. Sorts by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    problem: String,
    fix: String,
}

impl Finding {
    /// Lines count from 1.
    pub(crate) fn new(
        file: impl Into<String>,
        line: usize,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), line, problem: problem.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.file, self.line, self.problem, self.fix)
    }
}

/// What a rule's findings print, for its tests.
#[cfg(test)]
pub(crate) fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
