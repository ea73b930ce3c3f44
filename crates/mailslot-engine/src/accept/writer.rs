//! The accept writer: concurrent accepts share one insert.
//!
//! While as many appends are in flight as the store takes well at once, what arrives waits and goes with the next one.
//! There is no timer: an accept that comes alone is stored at once.

use super::error::{AcceptError, BatchError, receipts};
use super::pressure::Pressure;
use crate::stats::StatsSender;
use crate::store::{Store, may_be_one_message};
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{Receipt, StoreError, StoreErrorKind};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Most messages in one shared append: larger ones gained nothing and lengthen the wait of the first.
const COALESCE_MAX: usize = 512;

/// Most payload bytes in one shared append.
const COALESCE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A shared append of fewer groups lets callers queue before the next one: at 16 callers batches grew from 9 messages to
/// 15, while at 256 the pause cost more than it gained.
const FEW: usize = 64;

/// How many accepts may wait; the next caller then waits to queue.
const QUEUE: usize = 4_096;

type Answer = Result<Vec<Appended>, Arc<StoreError>>;

struct Waiting {
    group: AppendGroup,
    answer: oneshot::Sender<Answer>,
}

/// Stores groups of messages, many at once. Its task starts with the first accept and ends with the last handle.
pub(crate) struct AcceptWriter {
    store: Arc<dyn Store>,
    stats: StatsSender,
    pressure: Option<Pressure>,
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
}

impl fmt::Debug for AcceptWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcceptWriter")
    }
}

impl AcceptWriter {
    pub(crate) fn new(store: Arc<dyn Store>, stats: StatsSender, pressure: Option<Pressure>) -> Self {
        Self { store, stats, pressure, queue: Mutex::new(None) }
    }

    /// Stores a group and gives its receipts. Dropping the future does not undo the accept.
    pub(crate) async fn accept(&self, group: AppendGroup) -> Result<Vec<Receipt>, BatchError> {
        let at_first = |error: AcceptError| BatchError { index: 0, error };
        if let Some(pressure) = &self.pressure {
            pressure.pass().await.map_err(at_first)?;
        }
        let (answer, answered) = oneshot::channel();
        let mut waiting = Some(Waiting { group, answer });
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
        match answered.await {
            Ok(Ok(answers)) => receipts(answers),
            Ok(Err(error)) => Err(at_first(AcceptError::Store(error))),
            Err(_) => {
                let detail =
                    "the accept writer has no running tokio runtime; accept inside of one, with the same key";
                Err(at_first(StoreError::new(StoreErrorKind::Unavailable, "append", detail).into()))
            }
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<Waiting>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue of the running task; `None` outside of a tokio runtime.
    fn queue(&self) -> Option<mpsc::Sender<Waiting>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let mut slot = self.slot();
        let start = || {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
            for _ in 0..self.store.capabilities().appends_at_once.max(1) {
                runtime.spawn(write_all(self.store.clone(), self.stats.clone(), Arc::clone(&receiver)));
            }
            sender
        };
        Some(slot.get_or_insert_with(start).clone())
    }
}

/// The writers of one store take turns at the queue: one gathers while the others write.
type Queue = Arc<tokio::sync::Mutex<mpsc::Receiver<Waiting>>>;

async fn write_all(store: Arc<dyn Store>, stats: StatsSender, queue: Queue) {
    while let Some((groups, answers)) = next(&queue).await {
        let few = groups.len() < FEW;
        write(store.as_ref(), &stats, groups, answers).await;
        if few {
            // Callers that wait in a loop get to queue their next accept, so that it is not one append too late.
            tokio::task::yield_now().await;
        }
    }
}

async fn next(queue: &Queue) -> Option<(Vec<AppendGroup>, Vec<oneshot::Sender<Answer>>)> {
    let mut queue = queue.lock().await;
    let first = queue.recv().await?;
    Some(gather(first, &mut queue))
}

fn gather(
    first: Waiting,
    queue: &mut mpsc::Receiver<Waiting>,
) -> (Vec<AppendGroup>, Vec<oneshot::Sender<Answer>>) {
    let size = |group: &AppendGroup| {
        let bytes: usize = group.messages.iter().map(|message| message.payload.bytes().len()).sum();
        (group.messages.len(), bytes)
    };
    let (mut messages, mut bytes) = size(&first.group);
    let (mut groups, mut answers) = (vec![first.group], vec![first.answer]);
    while messages < COALESCE_MAX && bytes < COALESCE_BYTES_MAX {
        let Ok(next) = queue.try_recv() else { break };
        let (more_messages, more_bytes) = size(&next.group);
        messages += more_messages;
        bytes += more_bytes;
        groups.push(next.group);
        answers.push(next.answer);
    }
    (groups, answers)
}

async fn write(
    store: &dyn Store,
    stats: &StatsSender,
    groups: Vec<AppendGroup>,
    answers: Vec<oneshot::Sender<Answer>>,
) {
    // The copy is needed only where one bad group could spoil the others.
    let again = (groups.len() > 1).then(|| groups.clone());
    match (store.append(groups).await, again) {
        (Ok(stored), _) => {
            for (answer, stored) in answers.into_iter().zip(stored) {
                tell(stats, answer, stored);
            }
        }
        (Err(error), Some(again)) if may_be_one_message(&error) => {
            write_one_by_one(store, stats, again, answers).await;
        }
        (Err(error), _) => {
            let error = Arc::new(error);
            for answer in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}

/// After an append failed for good: finds the group that is to blame, so that the others are stored.
async fn write_one_by_one(
    store: &dyn Store,
    stats: &StatsSender,
    groups: Vec<AppendGroup>,
    answers: Vec<oneshot::Sender<Answer>>,
) {
    for (group, answer) in groups.into_iter().zip(answers) {
        match store.append(vec![group]).await {
            Ok(mut stored) => tell(stats, answer, stored.pop().unwrap_or_default()),
            Err(error) => {
                let _ = answer.send(Err(Arc::new(error)));
            }
        }
    }
}

/// Counts here and not at the caller, who may have gone away; what is stored counts all the same.
fn tell(stats: &StatsSender, answer: oneshot::Sender<Answer>, stored: Vec<Appended>) {
    let receipts = || stored.iter().filter_map(Appended::receipt);
    let new = receipts().filter(|receipt| receipt.is_new()).count() as u64;
    let known = receipts().count() as u64 - new;
    let refused = stored.len() as u64 - new - known;
    stats.add(|stats| {
        stats.accepted += new;
        stats.duplicates += known;
        stats.refused_accepts += refused;
    });
    let _ = answer.send(Ok(stored));
}
