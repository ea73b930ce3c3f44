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

/// What was asked for, told apart from the same thing asked for before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    number: u64,
    pub(super) wanted: Wanted,
}

impl Wish {
    pub(super) fn is_drain(self) -> bool {
        matches!(self.wanted, Wanted::Drain { .. })
    }

    /// Whether reaching this one means what reaching `other` meant.
    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self.wanted) == std::mem::discriminant(&other.wanted)
    }
}

/// What the worker says it is doing, and for which wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    wish: Wish,
    state: WorkerState,
}

/// The switch and the state of one inbox's worker.
#[derive(Debug)]
pub(crate) struct Control {
    wish: watch::Sender<Wish>,
    answer: watch::Sender<Answer>,
}

impl Control {
    pub(crate) fn new() -> Self {
        let wish = Wish { number: 0, wanted: Wanted::Run };
        let answer = Answer { wish, state: WorkerState::Stopped };
        Self { wish: watch::Sender::new(wish), answer: watch::Sender::new(answer) }
    }

    /// Marks the worker as running; `None` if it already is. It counts as stopped when the guard is dropped.
    ///
    /// A wish that the last run left behind is forgotten: nobody waits for it.
    pub(super) fn start(self: &Arc<Self>) -> Option<Running> {
        let free = |answer: &mut Answer| {
            let free = answer.state == WorkerState::Stopped;
            if free {
                *answer = Answer { wish: self.want(Wanted::Run), state: WorkerState::Running };
            }
            free
        };
        self.answer.send_if_modified(free).then(|| Running(self.clone()))
    }

    pub(super) fn wishes(&self) -> watch::Receiver<Wish> {
        self.wish.subscribe()
    }

    /// Says what the worker does about a wish.
    pub(super) fn answer(&self, wish: Wish, state: WorkerState) {
        let answer = Answer { wish, state };
        self.answer.send_if_modified(|present| std::mem::replace(present, answer) != answer);
    }

    pub(crate) fn state(&self) -> WorkerState {
        self.answer.borrow().state
    }

    fn want(&self, wanted: Wanted) -> Wish {
        let mut wish = Wish { number: 0, wanted };
        self.wish.send_modify(|present| {
            wish.number = present.number + 1;
            *present = wish;
        });
        wish
    }

    /// Waits until the worker says that it did what this wish, or a later one like it, asks for.
    async fn reach(&self, wish: Wish, reached: WorkerState) -> Result<(), ControlError> {
        let mut answers = self.answer.subscribe();
        let ends = |answer: &Answer| {
            let later = answer.wish.number > wish.number && !answer.wish.is_like(wish);
            let done = answer.wish.number >= wish.number && answer.state == reached;
            done || later || answer.state == WorkerState::Stopped
        };
        let last = answers.wait_for(ends).await.map(|answer| *answer);
        match last {
            Ok(answer) if answer.state == WorkerState::Stopped => Err(ControlError::NotRunning),
            Ok(answer) if answer.state == reached => Ok(()),
            Ok(_) => Err(ControlError::Overruled),
            Err(_) => Err(ControlError::NotRunning),
        }
    }
}

/// The worker counts as running while this lives.
#[derive(Debug)]
pub(super) struct Running(Arc<Control>);

impl Drop for Running {
    fn drop(&mut self) {
        let wish = *self.0.wish.borrow();
        self.0.answer(wish, WorkerState::Stopped);
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
    /// No worker runs here, or a resume or drain was asked for meanwhile.
    pub async fn pause(&self) -> Result<(), ControlError> {
        let wish = self.control.want(Wanted::Pause);
        self.control.reach(wish, WorkerState::Paused).await
    }

    /// Claims again, after a pause or a drain.
    pub fn resume(&self) {
        let _ = self.control.want(Wanted::Run);
    }

    /// Handles everything that is due now, then stops claiming, and waits for that. What becomes due later, retries
    /// included, stays for a [`resume`](Self::resume). Dropping the future leaves the worker draining.
    ///
    /// # Errors
    /// No worker runs here, the store cannot tell the time, or a resume or pause was asked for meanwhile.
    pub async fn drain(&self) -> Result<(), ControlError> {
        if self.state() == WorkerState::Stopped {
            return Err(ControlError::NotRunning);
        }
        let due_until = self.store.now().await.map_err(ControlError::Store)?;
        let wish = self.control.want(Wanted::Drain { due_until });
        self.control.reach(wish, WorkerState::Drained).await
    }
}

/// A worker cannot be controlled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No worker runs in this process, or it stopped meanwhile.
    #[error("no worker runs here: call `run` on the inbox first")]
    NotRunning,
    /// Something else was asked for before this was reached.
    #[error("another pause, resume or drain was asked for before this one was reached")]
    Overruled,
    /// The store cannot tell the time.
    #[error("failed to read the store's time: {0}")]
    Store(#[source] StoreError),
}
