//! Observers: told at some time, and never in the way.

use super::event::Lifecycle;
use async_trait::async_trait;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// How many notices may wait for one observer; what comes then is dropped, and counted.
const QUEUE: usize = 4_096;

/// Watches what happens to messages. Its notices come one after the other, in the order in which things happened, and some
/// time after that.
///
/// Nothing waits for an observer. One that panics misses this notice; one that hangs misses all that come after its queue is
/// full. It must not block the thread: await, or hand over to a thread of your own.
#[async_trait]
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    async fn notice(&self, event: &Lifecycle);
}

/// An observer with its queue. Its task starts with the first notice and ends with the inbox.
pub(super) struct Watching {
    observer: Arc<dyn Observer>,
    queue: Mutex<Option<mpsc::Sender<Lifecycle>>>,
}

impl Watching {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, queue: Mutex::default() }
    }

    /// Queues a notice. `false`: it was dropped.
    pub(super) fn tell(&self, event: Lifecycle) -> bool {
        let mut slot = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // A queue whose task died with its runtime is replaced.
        slot.take_if(|queue| queue.is_closed());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
        let queue = slot.get_or_insert_with(|| {
            let (queue, notices) = mpsc::channel(QUEUE);
            runtime.spawn(watch(Arc::clone(&self.observer), notices));
            queue
        });
        queue.try_send(event).is_ok()
    }
}

async fn watch(observer: Arc<dyn Observer>, mut notices: mpsc::Receiver<Lifecycle>) {
    while let Some(event) = notices.recv().await {
        if AssertUnwindSafe(observer.notice(&event)).catch_unwind().await.is_err() {
            tracing::error!("an observer panicked; it goes on with the next notice");
        }
    }
}
