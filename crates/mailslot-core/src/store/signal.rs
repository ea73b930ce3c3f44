//! How a store says that there may be work.

use event_listener::{Event, EventListener};
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// How a store notices the accepts of other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeMode {
    /// The listener is connecting, for the first time or again; until then by polling.
    Connecting,
    /// By notifications.
    Listening,
    /// By polling, because there is a pooler in transaction mode in between, through which no notification comes.
    PollingBehindPooler,
    /// By polling, because the options say so.
    PollingByChoice,
}

impl WakeMode {
    const ALL: [Self; 4] =
        [Self::Connecting, Self::Listening, Self::PollingBehindPooler, Self::PollingByChoice];

    /// A word for a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Listening => "listening",
            Self::PollingBehindPooler => "polling_behind_pooler",
            Self::PollingByChoice => "polling_by_choice",
        }
    }
}

impl fmt::Display for WakeMode {
    /// As people are told it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connecting => "polling, because the listener has no connection",
            Self::Listening => "listening",
            Self::PollingBehindPooler => {
                "polling, because there is a pooler in transaction mode, through which no notification comes"
            }
            Self::PollingByChoice => "polling, because the options of the store say so",
        })
    }
}

/// Not one of [`WakeMode::ALL`].
const UNSAID: u8 = u8::MAX;

/// Wakes those who wait for work. A wake-up is a hint: a store may be asked in vain, and a lost hint costs one poll.
#[derive(Debug)]
pub struct WorkSignal {
    event: Event,
    mode: AtomicU8,
}

impl Default for WorkSignal {
    fn default() -> Self {
        Self { event: Event::new(), mode: AtomicU8::new(UNSAID) }
    }
}

impl WorkSignal {
    /// A signal that nobody gave yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everyone who listens now.
    pub fn notify(&self) {
        self.event.notify(usize::MAX);
    }

    /// Starts to listen. What is notified after this call wakes the listener, so listen first and look then.
    pub fn listen(&self) -> EventListener {
        self.event.listen()
    }

    /// How the accepts of other processes reach this signal, if the store said so.
    pub fn mode(&self) -> Option<WakeMode> {
        let mode = self.mode.load(Ordering::Relaxed);
        WakeMode::ALL.into_iter().find(|known| *known as u8 == mode)
    }

    /// Says how the accepts of other processes reach this signal from now on. Another mode than before wakes everyone:
    /// something may have been missed meanwhile. Returns whether it is another one.
    pub fn set_mode(&self, mode: WakeMode) -> bool {
        let is_other = self.mode.swap(mode as u8, Ordering::Relaxed) != mode as u8;
        if is_other {
            self.notify();
        }
        is_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event_listener::Listener as _;

    #[test]
    fn another_mode_wakes_and_the_same_one_does_not() {
        let signal = WorkSignal::new();
        assert_eq!(signal.mode(), None);
        for mode in WakeMode::ALL {
            let listener = signal.listen();
            assert!(signal.set_mode(mode));
            assert!(listener.wait_timeout(std::time::Duration::ZERO).is_some());
            assert_eq!(signal.mode(), Some(mode));
            let listener = signal.listen();
            assert!(!signal.set_mode(mode));
            assert!(listener.wait_timeout(std::time::Duration::ZERO).is_none());
        }
    }
}
