//! What handlers record, and how long they take.

use crate::latencies::{Latencies, latencies, record};
use crate::message::{Work, now_ns};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a handler does. Clones share what they record.
#[derive(Debug, Clone)]
pub struct Probe {
    recording: Arc<AtomicBool>,
    starts: Arc<Mutex<Latencies>>,
    /// How long a handler waits; not at all by default.
    pub handler: Option<Duration>,
}

impl Probe {
    /// Handlers that wait for this long.
    pub fn new(handler: Option<Duration>) -> Self {
        Self { recording: Arc::default(), starts: Arc::new(Mutex::new(latencies())), handler }
    }

    /// Starts or stops to record how long after their accepts handlers start.
    pub fn record(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
    }

    /// A handler starts with a message that was sent then.
    pub fn started(&self, sent_ns: u64) {
        if self.recording.load(Ordering::Relaxed) {
            let late = Duration::from_nanos(now_ns().saturating_sub(sent_ns));
            record(&mut self.starts.lock().unwrap_or_else(PoisonError::into_inner), late);
        }
    }

    /// As [`started`](Self::started), for who has only the payload.
    pub fn started_payload(&self, payload: &[u8]) {
        if self.recording.load(Ordering::Relaxed) {
            self.started(Work::sent_ns_of(payload).unwrap_or_default());
        }
    }

    /// All that was recorded.
    pub fn take(&self) -> Latencies {
        std::mem::replace(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner), latencies())
    }
}
