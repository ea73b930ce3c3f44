//! One call for what many callers ask at the same time.
//!
//! While as many calls are in flight as the work takes well at once, what arrives waits and goes with the next one. There is
//! no timer: a question that comes alone is asked at once.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// How many questions may wait; the next caller then waits to queue.
const QUEUE: usize = 4_096;

/// Calls with fewer questions let callers queue before the next one: at 16 callers batches grew from 9 messages to 15, while
/// at 256 the pause cost more than it gained.
const FEW: usize = 64;

/// Work that is done for many callers in one call.
pub(crate) trait Shared: Send + Sync + 'static {
    /// What one caller asks.
    type Item: Send;
    /// What it gets.
    type Answer: Send;

    /// The most that goes into one call: parts and bytes, as [`Shared::size`] counts them.
    const MAX: Size;

    /// How much of a call an item takes.
    fn size(&self, item: &Self::Item) -> Size;

    /// How many calls may be in flight together.
    fn at_once(&self) -> usize;

    /// Answers every item, in order.
    fn call(&self, items: Vec<Self::Item>) -> impl Future<Output = Vec<Self::Answer>> + Send;
}

/// How much something takes of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) parts: usize,
    pub(crate) bytes: usize,
}

struct Waiting<W: Shared> {
    item: W::Item,
    answer: oneshot::Sender<W::Answer>,
}

/// Gathers callers. Its tasks start with the first of them and end with the last handle.
pub(crate) struct Coalescer<W: Shared> {
    work: Arc<W>,
    queue: Mutex<Option<mpsc::Sender<Waiting<W>>>>,
}

impl<W: Shared> fmt::Debug for Coalescer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coalescer")
    }
}

impl<W: Shared> Coalescer<W> {
    pub(crate) fn new(work: W) -> Self {
        Self { work: Arc::new(work), queue: Mutex::new(None) }
    }

    /// Asks. `None`: no tokio runtime runs here, or it is ending. Dropping the future does not take the question back.
    pub(crate) async fn ask(&self, item: W::Item) -> Option<W::Answer> {
        let (answer, answered) = oneshot::channel();
        let mut waiting = Some(Waiting { item, answer });
        // A queue whose task died with its runtime is replaced; a second failure means that this runtime is ending.
        for _ in 0..2 {
            let (Some(queue), Some(next)) = (self.queue(), waiting.take()) else { break };
            if let Err(mpsc::error::SendError(back)) = queue.send(next).await {
                waiting = Some(back);
                *self.slot() = None;
            }
        }
        // What could not be queued gives up its answer here, which ends the wait below.
        drop(waiting);
        answered.await.ok()
    }

    fn slot(&self) -> MutexGuard<'_, Option<mpsc::Sender<Waiting<W>>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue of the running tasks; `None` outside of a tokio runtime.
    fn queue(&self) -> Option<mpsc::Sender<Waiting<W>>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let mut slot = self.slot();
        let start = || {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
            for _ in 0..self.work.at_once().max(1) {
                runtime.spawn(serve(Arc::clone(&self.work), Arc::clone(&receiver)));
            }
            sender
        };
        Some(slot.get_or_insert_with(start).clone())
    }
}

/// The tasks of one coalescer take turns at the queue: one gathers while the others work.
type Queue<W> = Arc<tokio::sync::Mutex<mpsc::Receiver<Waiting<W>>>>;

async fn serve<W: Shared>(work: Arc<W>, queue: Queue<W>) {
    while let Some((items, answers)) = next(work.as_ref(), &queue).await {
        let few = items.len() < FEW;
        for (answer, answered) in work.call(items).await.into_iter().zip(answers) {
            // Whoever asked may have gone away.
            let _ = answered.send(answer);
        }
        if few {
            // Callers that wait in a loop get to queue their next question, so that it is not one call too late.
            tokio::task::yield_now().await;
        }
    }
}

type Gathered<W> = (Vec<<W as Shared>::Item>, Vec<oneshot::Sender<<W as Shared>::Answer>>);

async fn next<W: Shared>(work: &W, queue: &Queue<W>) -> Option<Gathered<W>> {
    let mut queue = queue.lock().await;
    let first = queue.recv().await?;
    Some(gather(work, first, &mut queue))
}

fn gather<W: Shared>(work: &W, first: Waiting<W>, queue: &mut mpsc::Receiver<Waiting<W>>) -> Gathered<W> {
    let Size { mut parts, mut bytes } = work.size(&first.item);
    let (mut items, mut answers) = (vec![first.item], vec![first.answer]);
    while parts < W::MAX.parts && bytes < W::MAX.bytes {
        let Ok(Waiting { item, answer }) = queue.try_recv() else { break };
        let more = work.size(&item);
        parts += more.parts;
        bytes += more.bytes;
        items.push(item);
        answers.push(answer);
    }
    (items, answers)
}
