//! The messages of the cases, and a handler that a case leads by the hand.

use futures_util::future::BoxFuture;
use mailslot_core::{Context, IntoVerdict, Json, Message, MessageId, Verdict};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// The message of most cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which one.
    pub number: u32,
    /// What the case wants of its handler, or wants it to write.
    pub note: String,
}

impl Message for Order {
    const NAME: &'static str = "order";
    const VERSION: u32 = 1;
    type Codec = Json;
}

/// An order by number.
pub(super) fn order(number: u32) -> Order {
    Order { number, note: String::new() }
}

/// An order with a note.
pub(super) fn noted(note: &str) -> Order {
    Order { note: note.into(), ..order(1) }
}

/// A message of another contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refund {
    pub(super) number: u32,
}

impl Message for Refund {
    const NAME: &'static str = "refund";
    const VERSION: u32 = 1;
    type Codec = Json;
}

/// The runs of a scripted handler, in the order in which they start.
pub(super) struct Runs(mpsc::UnboundedReceiver<Run>);

/// A handler that has started and waits to be told how to end.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) order: Order,
    pub(super) context: Context,
    answer: oneshot::Sender<Verdict>,
}

impl Runs {
    /// The next run.
    pub(super) async fn next(&mut self) -> Run {
        self.0.recv().await.expect("the handler lives as long as its inbox")
    }

    /// The next so many runs.
    pub(super) async fn take(&mut self, count: usize) -> Vec<Run> {
        let mut runs = Vec::with_capacity(count);
        for _ in 0..count {
            runs.push(self.next().await);
        }
        runs
    }

    /// The next so many runs by the numbers of their orders: handlers that are claimed together start in any order.
    pub(super) async fn take_sorted<const COUNT: usize>(&mut self) -> [Run; COUNT] {
        let mut runs = self.take(COUNT).await;
        runs.sort_by_key(|run| run.order.number);
        <[Run; COUNT]>::try_from(runs).expect("so many were taken")
    }

    /// Whether no other run has started.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Run {
    /// Lets the handler end so.
    pub(super) fn end(self, result: impl IntoVerdict) {
        // A handler that was dropped meanwhile does not hear it.
        let _ = self.answer.send(result.into_verdict());
    }

    /// Lets the handler succeed.
    pub(super) fn complete(self) {
        self.end(());
    }

    /// The message's id.
    pub(super) fn id(&self) -> MessageId {
        self.context.envelope().id
    }

    /// Whether the handler was dropped.
    pub(super) async fn dropped(&mut self) {
        self.answer.closed().await;
    }
}

/// A handler of orders that reports each start and ends as it is told; one whose run was dropped never ends.
pub(super) fn scripted()
-> (impl Fn(Order, Context) -> BoxFuture<'static, Verdict> + Clone + Send + Sync + 'static, Runs) {
    let (started, runs) = mpsc::unbounded_channel();
    let handler = move |order: Order, context: Context| -> BoxFuture<'static, Verdict> {
        let (answer, answered) = oneshot::channel();
        // A case that no longer listens drops the run, and so the handler never ends.
        let _ = started.send(Run { order, context, answer });
        Box::pin(async move {
            match answered.await {
                Ok(verdict) => verdict,
                Err(_) => std::future::pending().await,
            }
        })
    };
    (handler, Runs(runs))
}
