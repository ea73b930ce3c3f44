//! Subscribers: an inbox that the memory broker feeds, over the store under test.

mod broken;
mod circuit;
mod concurrent;
mod crash;
mod ending;
mod follow;
mod ingress;
mod order;
mod outbox;
mod reading;
mod recognise;
mod trace;
mod verdicts;

pub use crash::crash_points_markdown;

use super::bench::{Bench, builder_on, fine};
use super::case::Case;
use super::script::{Order, order};
use super::tap::{Call, TapStore};
use mailslot_core::broker::{BrokerMessage, CONTRACT_HEADER, MemoryBroker, MemoryReceiver, Publisher as _};
use mailslot_core::{Codec, Json};
use mailslot_engine::{
    Deduplication, InboxBuilder, SubscribeError, Subscriber, SubscriberBuilder, SubscriberCounts,
    SubscriberState,
};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(super) fn cases() -> Vec<Vec<Case>> {
    vec![
        broken::cases(),
        circuit::cases(),
        concurrent::cases(),
        crash::cases(),
        ending::cases(),
        follow::cases(),
        ingress::cases(),
        order::cases(),
        outbox::cases(),
        reading::cases(),
        recognise::cases(),
        trace::cases(),
        verdicts::cases(),
    ]
}

/// What the subscribers of the cases receive from.
const QUEUE: &str = "orders";

/// How long a case waits for something before it moves the clock: it costs time and decides nothing.
const OFTEN: Duration = Duration::from_millis(20);

/// A broker whose clock is that of the store.
struct Rig<'a> {
    bench: &'a Bench,
    broker: MemoryBroker,
}

fn rig(bench: &Bench) -> Rig<'_> {
    Rig { bench, broker: MemoryBroker::with_clock(Arc::clone(&bench.clock)) }
}

impl Rig<'_> {
    /// A subscriber in the making, with timers that fire often.
    fn subscribe(&self, inbox: InboxBuilder<TapStore>) -> SubscriberBuilder<TapStore> {
        inbox.subscribe(self.receiver())
    }

    /// One that recognises redeliveries.
    fn recognising(&self, inbox: InboxBuilder<TapStore>) -> SubscriberBuilder<TapStore> {
        self.subscribe(inbox).dedup(Deduplication::new())
    }

    fn receiver(&self) -> MemoryReceiver {
        self.broker.receiver(QUEUE)
    }

    /// An inbox of another process.
    fn elsewhere(&self) -> InboxBuilder<TapStore> {
        builder_on(self.bench.other_process())
    }

    async fn publish(&self, messages: impl IntoIterator<Item = BrokerMessage>) {
        let messages = messages.into_iter().collect();
        for published in self.broker.publisher().publish(QUEUE, messages).await {
            fine(published);
        }
    }

    /// Lets time pass, as much as is needed, until a future is ready: what was given back for later comes again.
    async fn pass_time_until<T>(&self, ready: impl Future<Output = T>) -> T {
        let mut ready = std::pin::pin!(ready);
        loop {
            if let Ok(ready) = tokio::time::timeout(OFTEN, &mut ready).await {
                return ready;
            }
            self.bench.advance(1);
            self.broker.wake();
        }
    }

    /// How many messages the broker still has.
    fn depth(&self) -> usize {
        self.broker.depth(QUEUE)
    }
}

fn encoded(order: &Order) -> bytes::Bytes {
    fine(<Json as Codec<Order>>::encode(order))
}

/// A message of the contract of orders.
fn sent(message_id: &str, number: u32) -> BrokerMessage {
    BrokerMessage {
        message_id: Some(message_id.to_owned()),
        content_type: Some("application/json".to_owned()),
        headers: BTreeMap::from([(CONTRACT_HEADER.to_owned(), "order@1".to_owned())]),
        payload: encoded(&order(number)),
        ..BrokerMessage::default()
    }
}

/// The same in a session.
fn sent_in(session: &str, message_id: &str, number: u32) -> BrokerMessage {
    BrokerMessage { session: Some(session.to_owned()), ..sent(message_id, number) }
}

/// A subscriber that runs. A case must stop or kill it, so that nothing moves while the invariants are checked.
struct Running {
    subscriber: Subscriber<TapStore>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<Result<(), SubscribeError>>>,
}

impl Deref for Running {
    type Target = Subscriber<TapStore>;
    fn deref(&self) -> &Subscriber<TapStore> {
        &self.subscriber
    }
}

/// Builds a subscriber and lets it run.
fn start(builder: SubscriberBuilder<TapStore>) -> Running {
    resume(fine(builder.build()))
}

/// Lets a subscriber run.
fn resume(subscriber: Subscriber<TapStore>) -> Running {
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn({
        let subscriber = subscriber.clone();
        async move { subscriber.run(async { stopped.await.unwrap_or_default() }).await }
    });
    Running { subscriber, stop: Some(stop), task: Some(task) }
}

impl Running {
    /// Waits until the counters say so.
    async fn until(&self, reached: impl FnMut(&SubscriberCounts) -> bool) -> SubscriberCounts {
        *self.watch().wait_for(reached).await.expect("the counters live as long as the subscriber")
    }

    /// Waits until it stands so.
    async fn is(&self, state: SubscriberState) {
        let mut states = self.state();
        states.wait_for(|now| *now == state).await.expect("the state lives as long as the subscriber");
    }

    fn begin_stop(&mut self) {
        self.stop.take();
    }

    /// Stops it, waits for its end, and gives its counters.
    async fn stop(mut self) -> SubscriberCounts {
        self.begin_stop();
        let task = self.task.take().expect("a subscriber is stopped once");
        fine(fine(task.await));
        self.counts()
    }

    /// Ends it as a crash would: in the middle of whatever it does.
    async fn kill(mut self) {
        // A heartbeat on its way would outlive it.
        self.inbox().store().cut_off(Call::Extend).await;
        let task = self.task.take().expect("a subscriber is stopped once");
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()), "it ended before it was killed");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        assert!(
            self.task.is_none() || std::thread::panicking(),
            "the case did not end in time, or forgot to stop its subscriber"
        );
    }
}
