//! The memory broker: queues in one process, the model that other brokers are compared with.

use super::{
    BrokerCapabilities, BrokerDelivery, BrokerError, BrokerErrorKind, BrokerMessage, BrokerSettlement,
    DeliveryTag, Publisher, Receiver,
};
use crate::clock::{Clock, SystemClock};
use crate::stored::later;
use async_trait::async_trait;
use event_listener::Event;
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most messages that wait in one queue: a publisher beyond it is told so, instead of filling the memory.
const QUEUE_MAX: usize = 1_000_000;

/// Queues in memory. Clones share them; a queue exists from its first use.
///
/// Its own clock decides what is due. Nothing here runs, so a receiver that waits for what is due later looks again when
/// anything happens or [`MemoryBroker::wake`] is called.
#[derive(Debug, Clone)]
pub struct MemoryBroker {
    shared: Arc<Shared>,
}

impl Default for MemoryBroker {
    fn default() -> Self {
        Self::with_clock(SystemClock)
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Event,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<String, Queue>,
    last_id: u64,
    /// Whether a test has cut the connections.
    is_away: bool,
}

#[derive(Debug, Default)]
struct Queue {
    /// By arrival, so that what comes back keeps its place.
    waiting: BTreeMap<u64, Queued>,
    in_flight: HashMap<DeliveryTag, (u64, Queued)>,
    busy_sessions: HashSet<String>,
    dead: Vec<(BrokerMessage, String)>,
    last_tag: u64,
}

#[derive(Debug, Clone)]
struct Queued {
    message: BrokerMessage,
    redeliveries: u32,
    /// `None`: at once.
    due: Option<Timestamp>,
}

impl MemoryBroker {
    /// A broker without queues.
    pub fn new() -> Self {
        Self::default()
    }

    /// A broker without queues whose time is that of `clock`.
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        let shared = Shared { state: Mutex::default(), changed: Event::new(), clock: Arc::new(clock) };
        Self { shared: Arc::new(shared) }
    }

    /// Cuts every connection: each call fails until [`mend`](Self::mend), and what was handed out and not settled goes
    /// back. For tests of what happens then.
    pub fn cut(&self) {
        let mut state = self.state();
        state.is_away = true;
        for queue in state.queues.values_mut() {
            for tag in queue.in_flight.keys().copied().collect::<Vec<_>>() {
                let _ = queue.settle(tag, BrokerSettlement::Return { after: Duration::ZERO }, Timestamp::MIN);
            }
        }
        drop(state);
        self.wake();
    }

    /// Lets calls work again after [`cut`](Self::cut).
    pub fn mend(&self) {
        self.state().is_away = false;
        self.wake();
    }

    /// Lets receivers look again: for those who have moved the clock.
    pub fn wake(&self) {
        self.shared.changed.notify(usize::MAX);
    }

    /// Receives from a queue. Several receivers share its messages.
    pub fn receiver(&self, queue: impl Into<String>) -> MemoryReceiver {
        MemoryReceiver { broker: self.clone(), queue: queue.into(), held: Mutex::default() }
    }

    /// Publishes to any queue.
    pub fn publisher(&self) -> MemoryPublisher {
        MemoryPublisher { broker: self.clone() }
    }

    /// How many messages of a queue are not acknowledged yet.
    pub fn depth(&self, queue: &str) -> usize {
        self.state().queues.get(queue).map_or(0, |queue| queue.waiting.len() + queue.in_flight.len())
    }

    /// The dead letters of a queue with their reasons, oldest first.
    pub fn dead_letters(&self, queue: &str) -> Vec<(BrokerMessage, String)> {
        self.state().queues.get(queue).map_or_else(Vec::new, |queue| queue.dead.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const CAPABILITIES: BrokerCapabilities = BrokerCapabilities {
    sessions: true,
    scheduled: true,
    delayed_return: true,
    stable_delivery_id: true,
    dead_letter: true,
    redelivery_count: true,
    ..BrokerCapabilities::none("memory")
};

impl Queue {
    /// Hands out at most `max` messages that are due and whose session is free, in order of arrival.
    fn take(&mut self, name: &str, max: usize, now: Timestamp) -> Vec<BrokerDelivery> {
        let mut ids = Vec::new();
        // Sessions whose first message is not due: nothing of theirs may overtake it.
        let mut held_up = HashSet::new();
        for (&id, queued) in &self.waiting {
            if ids.len() == max {
                break;
            }
            let session = queued.message.session.as_ref();
            if session.is_some_and(|session| held_up.contains(session)) {
                continue;
            }
            if queued.due.is_some_and(|due| due > now) {
                held_up.extend(session);
                continue;
            }
            let free = queued
                .message
                .session
                .as_ref()
                .is_none_or(|session| self.busy_sessions.insert(session.clone()));
            if free {
                ids.push(id);
            }
        }
        ids.into_iter().filter_map(|id| self.hand_out(name, id)).collect()
    }

    fn hand_out(&mut self, name: &str, id: u64) -> Option<BrokerDelivery> {
        let queued = self.waiting.remove(&id)?;
        self.last_tag += 1;
        let tag = DeliveryTag(self.last_tag);
        let delivery = BrokerDelivery {
            tag,
            delivery_id: id.to_string(),
            destination: name.to_owned(),
            redeliveries: Some(queued.redeliveries),
            message: queued.message.clone(),
        };
        self.in_flight.insert(tag, (id, queued));
        Some(delivery)
    }

    fn settle(
        &mut self,
        tag: DeliveryTag,
        settlement: BrokerSettlement,
        now: Timestamp,
    ) -> Result<(), BrokerError> {
        let lost = || {
            let detail = "the delivery was settled before, or handed out again";
            BrokerError::new(BrokerErrorKind::DeliveryLost, "settle", detail)
        };
        let (id, mut queued) = self.in_flight.remove(&tag).ok_or_else(lost)?;
        if let Some(session) = &queued.message.session {
            self.busy_sessions.remove(session);
        }
        match settlement {
            BrokerSettlement::Ack => {}
            BrokerSettlement::Return { after } => {
                queued.due = (!after.is_zero()).then(|| later(now, after));
                queued.redeliveries = queued.redeliveries.saturating_add(1);
                self.waiting.insert(id, queued);
            }
            BrokerSettlement::DeadLetter { reason } => self.dead.push((queued.message, reason)),
        }
        Ok(())
    }
}

fn away(operation: &'static str) -> BrokerError {
    BrokerError::new(BrokerErrorKind::Unavailable, operation, "a test has cut the connection")
}

/// Receives from one queue of a [`MemoryBroker`]. What it did not settle goes back when it is dropped.
#[derive(Debug)]
pub struct MemoryReceiver {
    broker: MemoryBroker,
    queue: String,
    held: Mutex<HashSet<DeliveryTag>>,
}

impl MemoryReceiver {
    fn held(&self) -> MutexGuard<'_, HashSet<DeliveryTag>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError> {
        let now = self.broker.shared.clock.now();
        let mut state = self.broker.state();
        if state.is_away {
            return Err(away("receive"));
        }
        let deliveries = state.queues.entry(self.queue.clone()).or_default().take(&self.queue, max, now);
        self.held().extend(deliveries.iter().map(|delivery| delivery.tag));
        Ok(deliveries)
    }
}

impl Drop for MemoryReceiver {
    fn drop(&mut self) {
        let tags: Vec<_> = self.held().drain().collect();
        let now = self.broker.shared.clock.now();
        if let Some(queue) = self.broker.state().queues.get_mut(&self.queue) {
            for tag in tags {
                // Already settled ones are no longer in flight, which is fine.
                let _ = queue.settle(tag, BrokerSettlement::Return { after: Duration::ZERO }, now);
            }
        }
        self.broker.wake();
    }
}

#[async_trait]
impl Receiver for MemoryReceiver {
    fn capabilities(&self) -> BrokerCapabilities {
        CAPABILITIES
    }

    async fn open(&self) -> Result<(), BrokerError> {
        if self.broker.state().is_away { Err(away("open")) } else { Ok(()) }
    }

    async fn receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError> {
        if max == 0 {
            return Err(BrokerError::new(
                BrokerErrorKind::Invalid,
                "receive",
                "`max` is 0: ask for at least 1",
            ));
        }
        loop {
            let changed = self.broker.shared.changed.listen();
            let deliveries = self.try_receive(max)?;
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            changed.await;
        }
    }

    async fn settle(
        &self,
        settlements: Vec<(DeliveryTag, BrokerSettlement)>,
    ) -> Vec<Result<(), BrokerError>> {
        let now = self.broker.shared.clock.now();
        let mut state = self.broker.state();
        if state.is_away {
            return settlements.iter().map(|_| Err(away("settle"))).collect();
        }
        let queue = state.queues.entry(self.queue.clone()).or_default();
        let settled = settlements
            .into_iter()
            .map(|(tag, settlement)| {
                self.held().remove(&tag);
                queue.settle(tag, settlement, now)
            })
            .collect();
        drop(state);
        self.broker.wake();
        settled
    }
}

/// Publishes to a [`MemoryBroker`].
#[derive(Debug, Clone)]
pub struct MemoryPublisher {
    broker: MemoryBroker,
}

#[async_trait]
impl Publisher for MemoryPublisher {
    fn capabilities(&self) -> BrokerCapabilities {
        CAPABILITIES
    }

    async fn open(&self) -> Result<(), BrokerError> {
        if self.broker.state().is_away { Err(away("open")) } else { Ok(()) }
    }

    async fn publish(&self, destination: &str, messages: Vec<BrokerMessage>) -> Vec<Result<(), BrokerError>> {
        let mut state = self.broker.state();
        if state.is_away {
            return messages.iter().map(|_| Err(away("publish"))).collect();
        }
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            state.last_id += 1;
            let id = state.last_id;
            let queue = state.queues.entry(destination.to_owned()).or_default();
            if queue.waiting.len() >= QUEUE_MAX {
                let detail = format!("the queue holds {QUEUE_MAX} messages: let receivers catch up");
                answers.push(Err(BrokerError::new(BrokerErrorKind::Unavailable, "publish", detail)));
                continue;
            }
            let due = message.due;
            queue.waiting.insert(id, Queued { message, redeliveries: 0, due });
            answers.push(Ok(()));
        }
        drop(state);
        self.broker.wake();
        answers
    }
}
