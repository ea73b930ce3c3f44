//! Which call fails, and how.

use crate::wrap::Around;
use mailslot_core::{StoreError, StoreErrorKind};
use std::fmt;
use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// When a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The call never reached the store.
    BeforeItsEffect,
    /// The call took effect; only its answer was lost.
    AfterItsEffect,
}

/// One call that fails, counted over all methods of the wrapped store.
#[derive(Debug)]
pub struct FaultPlan {
    fault: Option<(u64, When)>,
    calls: AtomicU64,
    failed: OnceLock<&'static str>,
    only: Option<Vec<&'static str>>,
}

impl FaultPlan {
    /// No call fails.
    pub fn none() -> Self {
        Self { fault: None, calls: AtomicU64::new(0), failed: OnceLock::new(), only: None }
    }

    /// The `call`-th call fails, counted from 1.
    pub fn failing(call: u64, when: When) -> Self {
        Self { fault: Some((call, when)), ..Self::none() }
    }

    /// Counts and fails only these methods, such as `["append", "exchange"]`.
    pub fn only(self, operations: &[&'static str]) -> Self {
        Self { only: Some(operations.to_vec()), ..self }
    }

    /// Whether the call came and failed.
    pub fn fired(&self) -> bool {
        self.failed.get().is_some()
    }

    /// How many calls were counted.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn next(&self, operation: &'static str) -> Option<When> {
        if self.only.as_ref().is_some_and(|only| !only.contains(&operation)) {
            return None;
        }
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let (call, when) = self.fault?;
        if number != call {
            return None;
        }
        self.failed.set(operation).ok()?;
        Some(when)
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fault, self.failed.get()) {
            (Some((call, When::BeforeItsEffect)), Some(operation)) => {
                write!(f, "call {call} ({operation}) failed before its effect")
            }
            (Some((call, When::AfterItsEffect)), Some(operation)) => {
                write!(f, "call {call} ({operation}) failed after its effect")
            }
            _ => f.write_str("no call failed"),
        }
    }
}

impl Around for std::sync::Arc<FaultPlan> {
    async fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        // The kind that leaves the caller in doubt, whichever way it was.
        let lost = || StoreError::new(StoreErrorKind::Unavailable, operation, "a test cut the connection");
        match self.next(operation) {
            None => call.await,
            Some(When::BeforeItsEffect) => Err(lost()),
            Some(When::AfterItsEffect) => {
                call.await?;
                Err(lost())
            }
        }
    }
}
