//! Transactions of others that stay open with a key or a session which accepts or verdicts want, too.
//!
//! Many go to the server together, so one that waits lets all of its batch wait. After one has waited in vain, the engine
//! looks for it by smaller and smaller batches, and each of them must not wait as long as the first.

use crate::error::is_held;
use mailslot_core::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// For how long a batch waits for a lock after another one waited in vain: longer than a commit usually takes, so that
/// accepts of the same key that follow each other do not meet it.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// For how long that goes on after the last of them.
const REMEMBERED: Duration = Duration::from_secs(5);

/// When a call of one kind was last held up by somebody else's transaction.
#[derive(Debug, Default)]
pub(crate) struct Holds(Mutex<Option<Instant>>);

impl Holds {
    /// For how long the next call waits for a lock. `None`: as long as its connection is set to.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.last().filter(|last| last.elapsed() < REMEMBERED).map(|_| SHORT_WAIT)
    }

    /// Takes note of how a call ended.
    pub(crate) fn note<T>(&self, ended: &Result<T, StoreError>) {
        if ended.as_ref().is_err_and(is_held) {
            *self.last() = Some(Instant::now());
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
