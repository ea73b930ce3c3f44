//! What happens in which order, and a fuse that stops a process between two steps.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The steps of one process, as its parts note them. Clones share them.
#[derive(Clone)]
pub(super) struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    steps: Mutex<Vec<String>>,
    /// The step at which the process stops, and at the how manieth of its kind from now on.
    fuse: Mutex<Option<(String, usize)>>,
    has_stopped: watch::Sender<bool>,
}

impl Default for Journal {
    fn default() -> Self {
        let has_stopped = watch::Sender::default();
        Self { inner: Arc::new(Inner { steps: Mutex::default(), fuse: Mutex::default(), has_stopped }) }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps()).finish()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journal {
    /// Lets the process stop at a step, the `nth` of its kind from now on: nothing that notes a step goes on then.
    pub(super) fn stop_at(&self, step: &str, nth: usize) {
        *locked(&self.inner.fuse) = Some((step.to_owned(), nth));
    }

    /// Notes a step.
    pub(super) async fn step(&self, step: impl Into<String>) {
        let step = step.into();
        if let Some((last, left)) = locked(&self.inner.fuse).as_mut()
            && *last == step
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.inner.has_stopped.send_replace(true);
            }
        }
        locked(&self.inner.steps).push(step);
        if *self.inner.has_stopped.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// The steps so far.
    pub(super) fn steps(&self) -> Vec<String> {
        locked(&self.inner.steps).clone()
    }

    /// Waits until the process has stopped.
    pub(super) async fn stopped(&self) {
        let mut stopped = self.inner.has_stopped.subscribe();
        stopped.wait_for(|stopped| *stopped).await.expect("the sender lives as long as the journal");
    }
}
