//! Pause, resume, drain.

use crate::store::Store;
use jiff::Timestamp;
use mailslot_core::StoreError;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerState {
    /// It was not started, or has stopped.
    Stopped,
    /// It claims and handles.
    Running,
    /// It claims nothing; what runs may still finish.
    Pausing,
    /// It claims nothing, and nothing runs.
    Paused,
    /// It claims only what was due when the drain was asked for.
    Draining,
    /// All that was due when the drain was asked for is done; it claims nothing.
    Drained,
    /// It was told to stop; what runs may still finish.
    Stopping,
}

/// What a worker should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Run,
    Pause,
    Drain { due_until: Timestamp },
}

/// The switch and the state of one inbox's worker.
#[derive(Debug)]
pub(crate) struct Control {
    wanted: watch::Sender<Wanted>,
    state: watch::Sender<WorkerState>,
}

impl Control {
    pub(crate) fn new() -> Self {
        Self { wanted: watch::Sender::new(Wanted::Run), state: watch::Sender::new(WorkerState::Stopped) }
    }

    /// Marks the worker as running; `None` if it already is. It counts as stopped when the guard is dropped.
    pub(super) fn start(self: &Arc<Self>) -> Option<Running> {
        let free = |state: &mut WorkerState| {
            let free = *state == WorkerState::Stopped;
            if free {
                *state = WorkerState::Running;
            }
            free
        };
        self.state.send_if_modified(free).then(|| Running(self.clone()))
    }

    pub(super) fn wanted(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(super) fn set_state(&self, state: WorkerState) {
        self.state.send_if_modified(|present| std::mem::replace(present, state) != state);
    }

    pub(crate) fn state(&self) -> WorkerState {
        *self.state.borrow()
    }

    fn want(&self, wanted: Wanted) {
        self.wanted.send_replace(wanted);
    }

    async fn reach(&self, reached: WorkerState) -> Result<(), ControlError> {
        let mut state = self.state.subscribe();
        let found = state.wait_for(|state| *state == reached || *state == WorkerState::Stopped).await;
        match found.map(|state| *state) {
            Ok(state) if state == reached => Ok(()),
            _ => Err(ControlError::NotRunning),
        }
    }
}

/// The worker counts as running while this lives.
#[derive(Debug)]
pub(super) struct Running(Arc<Control>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set_state(WorkerState::Stopped);
    }
}

/// The controls of one inbox's worker. Clones control the same one.
#[derive(Clone)]
pub struct WorkerControl {
    pub(crate) control: Arc<Control>,
    pub(crate) store: Arc<dyn Store>,
}

impl fmt::Debug for WorkerControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkerControl({:?})", self.state())
    }
}

impl WorkerControl {
    /// What the worker is doing.
    pub fn state(&self) -> WorkerState {
        self.control.state()
    }

    /// Stops claiming, gives back what never started, and waits until nothing runs. Dropping the future leaves the
    /// worker pausing.
    ///
    /// # Errors
    /// No worker runs here.
    pub async fn pause(&self) -> Result<(), ControlError> {
        self.control.want(Wanted::Pause);
        self.control.reach(WorkerState::Paused).await
    }

    /// Claims again, after a pause or a drain.
    pub fn resume(&self) {
        self.control.want(Wanted::Run);
    }

    /// Handles everything that is due now, then stops claiming, and waits for that. What becomes due later, retries
    /// included, stays for a [`resume`](Self::resume). Dropping the future leaves the worker draining.
    ///
    /// # Errors
    /// No worker runs here, or the store cannot tell the time.
    pub async fn drain(&self) -> Result<(), ControlError> {
        if self.state() == WorkerState::Stopped {
            return Err(ControlError::NotRunning);
        }
        let due_until = self.store.now().await.map_err(ControlError::Store)?;
        // The worker answers a new wish with a new state, so a drain after a drain must leave the old one first.
        self.control.state.send_if_modified(|state| {
            let again = *state == WorkerState::Drained;
            if again {
                *state = WorkerState::Draining;
            }
            again
        });
        self.control.want(Wanted::Drain { due_until });
        self.control.reach(WorkerState::Drained).await
    }
}

/// A worker cannot be controlled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No worker runs in this process, or it stopped meanwhile.
    #[error("no worker runs here: call `run` on the inbox first")]
    NotRunning,
    /// The store cannot tell the time.
    #[error("failed to read the store's time: {0}")]
    Store(#[source] StoreError),
}
