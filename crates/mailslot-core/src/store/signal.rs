//! How a store says that there may be work.

use event_listener::{Event, EventListener};

/// Wakes those who wait for work. A wake-up is a hint: a store may be asked in vain, and a lost hint costs one poll.
#[derive(Debug, Default)]
pub struct WorkSignal(Event);

impl WorkSignal {
    /// A signal that nobody gave yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everyone who listens now.
    pub fn notify(&self) {
        self.0.notify(usize::MAX);
    }

    /// Starts to listen. What is notified after this call wakes the listener, so listen first and look then.
    pub fn listen(&self) -> EventListener {
        self.0.listen()
    }
}
