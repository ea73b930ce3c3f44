//! Messages that are claimed and wait for a free executor.

use mailslot_core::Cancellation;
use mailslot_core::store::Leased;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// A claimed message and the means to stop its handler.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) leased: Leased,
    pub(super) cancellation: Cancellation,
}

/// A queue of jobs in claim order. Its length is bounded by what the turn loop claims.
#[derive(Debug)]
pub(super) struct Backlog {
    jobs: Mutex<VecDeque<Job>>,
    available: Semaphore,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { jobs: Mutex::default(), available: Semaphore::new(0) }
    }
}

impl Backlog {
    fn jobs(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push_all(&self, jobs: Vec<Job>) {
        let count = jobs.len();
        self.jobs().extend(jobs);
        self.available.add_permits(count);
    }

    pub(super) fn len(&self) -> usize {
        self.jobs().len()
    }

    /// The next job; `None` once the backlog is closed.
    pub(super) async fn next(&self) -> Option<Job> {
        loop {
            self.available.acquire().await.ok()?.forget();
            // A permit without a job is left over from a drain.
            if let Some(job) = self.jobs().pop_front() {
                return Some(job);
            }
        }
    }

    /// Takes back what never started.
    pub(super) fn drain(&self) -> Vec<Job> {
        self.jobs().drain(..).collect()
    }

    pub(super) fn close(&self) {
        self.available.close();
    }
}
