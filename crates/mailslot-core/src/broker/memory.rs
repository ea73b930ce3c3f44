//! The memory broker: queues in one process, the model that other brokers are compared with.

use super::{
    BrokerCapabilities, BrokerDelivery, BrokerError, BrokerErrorKind, BrokerMessage, BrokerSettlement,
    DeliveryTag, Publisher, Receiver,
};
use async_trait::async_trait;
use event_listener::Event;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most messages that wait in one queue: a publisher beyond it is told so, instead of filling the memory.
const QUEUE_MAX: usize = 1_000_000;

/// Queues in memory. Clones share them; a queue exists from its first use.
#[derive(Debug, Clone, Default)]
pub struct MemoryBroker {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Event,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<String, Queue>,
    last_id: u64,
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
}

impl MemoryBroker {
    /// A broker without queues.
    pub fn new() -> Self {
        Self::default()
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
    dead_letter: true,
    redelivery_count: true,
    ..BrokerCapabilities::none("memory")
};

impl Queue {
    /// Hands out at most `max` messages whose session is free, in order of arrival.
    fn take(&mut self, name: &str, max: usize) -> Vec<BrokerDelivery> {
        let mut ids = Vec::new();
        for (&id, queued) in &self.waiting {
            if ids.len() == max {
                break;
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

    fn settle(&mut self, tag: DeliveryTag, settlement: BrokerSettlement) -> Result<(), BrokerError> {
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
            BrokerSettlement::Return => {
                queued.redeliveries = queued.redeliveries.saturating_add(1);
                self.waiting.insert(id, queued);
            }
            BrokerSettlement::DeadLetter { reason } => self.dead.push((queued.message, reason)),
        }
        Ok(())
    }
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

    fn try_receive(&self, max: usize) -> Vec<BrokerDelivery> {
        let deliveries =
            self.broker.state().queues.entry(self.queue.clone()).or_default().take(&self.queue, max);
        self.held().extend(deliveries.iter().map(|delivery| delivery.tag));
        deliveries
    }
}

impl Drop for MemoryReceiver {
    fn drop(&mut self) {
        let tags: Vec<_> = self.held().drain().collect();
        if let Some(queue) = self.broker.state().queues.get_mut(&self.queue) {
            for tag in tags {
                // Already settled ones are no longer in flight, which is fine.
                let _ = queue.settle(tag, BrokerSettlement::Return);
            }
        }
        self.broker.shared.changed.notify(usize::MAX);
    }
}

#[async_trait]
impl Receiver for MemoryReceiver {
    fn capabilities(&self) -> BrokerCapabilities {
        CAPABILITIES
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
            let deliveries = self.try_receive(max);
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
        let mut state = self.broker.state();
        let queue = state.queues.entry(self.queue.clone()).or_default();
        let settled = settlements
            .into_iter()
            .map(|(tag, settlement)| {
                self.held().remove(&tag);
                queue.settle(tag, settlement)
            })
            .collect();
        drop(state);
        self.broker.shared.changed.notify(usize::MAX);
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

    async fn publish(&self, destination: &str, messages: Vec<BrokerMessage>) -> Vec<Result<(), BrokerError>> {
        let mut state = self.broker.state();
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
            queue.waiting.insert(id, Queued { message, redeliveries: 0 });
            answers.push(Ok(()));
        }
        drop(state);
        self.broker.shared.changed.notify(usize::MAX);
        answers
    }
}
