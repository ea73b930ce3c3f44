//! Waking workers: those of this process directly, those of others by a notification that is sent apart from the accepts.

use crate::connection::Sessions;
use crate::store::Shared;
use mailslot_core::WorkSignal;
use std::sync::Arc;

/// How work is noticed.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    signal: WorkSignal,
}

impl Wakeup {
    pub(crate) fn signal(&self) -> &WorkSignal {
        &self.signal
    }

    /// There may be work: wakes this process now, and others soon.
    pub(crate) fn notify(&self) {
        self.signal.notify();
    }
}

pub(crate) fn start(_shared: &Arc<Shared>, _sessions: Sessions) {}
