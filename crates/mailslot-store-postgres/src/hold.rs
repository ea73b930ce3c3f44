//! Transactions of others that stay open with a key or a session which accepts or verdicts want, too.
//!
//! Many go to the server together, so one that waits lets all of its batch wait. After one has waited in vain, the engine
//! looks for it by smaller and smaller batches, and each of them must not wait as long as the first.

use crate::error::is_held;
use mailslot_core::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// For how long appends wait for a lock after one waited in vain. There are ten such waits until one of 512 is found;
/// and one that only met a commit on its way is tried again soon, which costs less than longer waits of all others.
pub(crate) const APPEND_WAIT: Duration = Duration::from_millis(20);

/// For how long settlements do: longer than a commit usually takes, because a worker's turns meet in their leases.
pub(crate) const SETTLE_WAIT: Duration = Duration::from_millis(50);

/// For how long that goes on after the last of them.
const REMEMBERED: Duration = Duration::from_secs(5);

/// When a call of one kind was last held up by somebody else's transaction.
#[derive(Debug)]
pub(crate) struct Holds {
    last: Mutex<Option<Instant>>,
    wait: Duration,
}

impl Holds {
    /// Of calls that then wait for so long.
    pub(crate) fn new(wait: Duration) -> Self {
        Self { last: Mutex::default(), wait }
    }

    /// For how long the next call waits for a lock. `None`: as long as its connection is set to.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.last().filter(|last| last.elapsed() < REMEMBERED).map(|_| self.wait)
    }

    /// Takes note of how a call ended.
    pub(crate) fn note<T>(&self, ended: &Result<T, StoreError>) {
        if ended.as_ref().is_err_and(is_held) {
            *self.last() = Some(Instant::now());
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
