//! Receiving from a queue.

use crate::error::during;
use crate::link::Link;
use crate::message::{REASON_HEADER, message};
use crate::publisher::RabbitPublisher;
use crate::queue::{DeadLetters, Queue};
use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};

use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Acker, Channel, Consumer};
use mailslot_core::broker::{
    BrokerCapabilities, BrokerDelivery, BrokerError, BrokerErrorKind, BrokerMessage, BrokerSettlement,
    DeliveryTag, Receiver,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use tokio::sync::Mutex;
use uuid::Uuid;

/// What RabbitMQ can do for every queue.
pub(crate) const CAPABILITIES: BrokerCapabilities = {
    let mut capabilities = BrokerCapabilities::none("rabbitmq");
    capabilities.durable = true;
    capabilities.dead_letter = true;
    capabilities
};

/// Receives from one queue. What it did not settle goes back when it is dropped.
pub struct RabbitReceiver {
    link: Arc<Link>,
    dead: RabbitPublisher,
    queue: Queue,
    consuming: Mutex<Option<Consuming>>,
    held: StdMutex<Held>,
}

/// A consumer on a channel of its own.
struct Consuming {
    channel: Channel,
    consumer: Consumer,
    /// Tells this consumer's deliveries from those of any other.
    id: Uuid,
}

/// What was handed over and is not settled yet.
#[derive(Default)]
struct Held {
    last_tag: u64,
    deliveries: HashMap<DeliveryTag, (Acker, BrokerMessage)>,
}

impl fmt::Debug for RabbitReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RabbitReceiver");
        out.field("server", &self.link).field("queue", &self.queue.name.as_str()).finish_non_exhaustive()
    }
}

impl RabbitReceiver {
    pub(crate) fn new(link: Arc<Link>, dead: RabbitPublisher, queue: Queue) -> Self {
        Self { link, dead, queue, consuming: Mutex::default(), held: StdMutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The consumer, or a new one if it is gone.
    async fn consume<'c>(
        &self,
        slot: &'c mut Option<Consuming>,
        operation: &'static str,
    ) -> Result<&'c mut Consuming, BrokerError> {
        let works = slot.as_ref().is_some_and(|consuming| consuming.channel.status().connected());
        if !works {
            // Before the new one: what it held comes again, and not beside it.
            *slot = None;
            *slot = Some(self.begin(operation).await?);
        }
        Ok(slot.as_mut().expect("it was filled"))
    }

    async fn begin(&self, operation: &'static str) -> Result<Consuming, BrokerError> {
        let channel = self.link.channel(operation).await?;
        self.queue.provide(&channel, operation).await?;
        let mapped = |error| during(operation, error);
        channel.basic_qos(self.queue.prefetch, BasicQosOptions::default()).await.map_err(mapped)?;
        let id = Uuid::new_v4();
        let tag = format!("mailslot-{}", id.simple());
        let options = BasicConsumeOptions::default();
        let consumer =
            channel.basic_consume(self.queue.name.clone(), tag.into(), options, FieldTable::default());
        let consumer = consumer.await.map_err(mapped)?;
        Ok(Consuming { channel, consumer, id })
    }

    fn take(&self, id: Uuid, delivery: Delivery) -> BrokerDelivery {
        let Delivery { delivery_tag, redelivered, properties, data, acker, .. } = delivery;
        let (message, count) = message(&properties, data);
        let counts = self.queue.counts_deliveries();
        let mut held = self.held();
        held.last_tag += 1;
        let tag = DeliveryTag(held.last_tag);
        held.deliveries.insert(tag, (acker, message.clone()));
        BrokerDelivery {
            tag,
            // RabbitMQ has no id of a message: this one is the delivery's.
            delivery_id: format!("{}/{delivery_tag}", id.simple()),
            destination: self.queue.name.as_str().to_owned(),
            // The count begins with the first redelivery.
            redeliveries: counts.then(|| count.unwrap_or(u32::from(redelivered))),
            message,
        }
    }

    async fn settle_one(&self, tag: DeliveryTag, settlement: BrokerSettlement) -> Result<(), BrokerError> {
        const OPERATION: &str = "settle";
        let lost = || {
            let detail = "the delivery was settled before, or went back with its connection";
            BrokerError::new(BrokerErrorKind::DeliveryLost, OPERATION, detail)
        };
        let (acker, message) = self.held().deliveries.remove(&tag).ok_or_else(lost)?;
        if !acker.usable() {
            return Err(lost());
        }
        let settled = match settlement {
            BrokerSettlement::Ack => acker.ack(BasicAckOptions::default()).await,
            BrokerSettlement::Return { .. } => {
                acker.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await
            }
            BrokerSettlement::DeadLetter { reason } => {
                if let Err(error) = self.bury(message, reason).await {
                    let back = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
                    // It comes again by itself if this fails, too.
                    let _ = acker.nack(back).await;
                    return Err(error);
                }
                acker.ack(BasicAckOptions::default()).await
            }
        };
        if settled.map_err(|error| during(OPERATION, error))? { Ok(()) } else { Err(lost()) }
    }

    /// Publishes a dead letter with its reason, which RabbitMQ's own way of rejecting has no place for. It is confirmed before
    /// the delivery is acknowledged, so a crash in between makes two of it, and never none.
    async fn bury(&self, mut message: BrokerMessage, reason: String) -> Result<(), BrokerError> {
        message.headers.insert(REASON_HEADER.to_owned(), reason);
        let DeadLetters { exchange, routing_key, .. } = &self.queue.dead_letters;
        let answers = self.dead.publish_to((exchange, routing_key), vec![message]).await;
        answers.into_iter().collect()
    }
}

#[async_trait]
impl Receiver for RabbitReceiver {
    fn capabilities(&self) -> BrokerCapabilities {
        let mut capabilities = CAPABILITIES;
        capabilities.redelivery_count = self.queue.counts_deliveries();
        capabilities
    }

    async fn open(&self) -> Result<(), BrokerError> {
        self.consume(&mut *self.consuming.lock().await, "open").await.map(|_| ())
    }

    async fn receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError> {
        const OPERATION: &str = "receive";
        if max == 0 {
            let detail = "`max` is 0: ask for at least 1";
            return Err(BrokerError::new(BrokerErrorKind::Invalid, OPERATION, detail));
        }
        let mut slot = self.consuming.lock().await;
        let consuming = self.consume(&mut slot, OPERATION).await?;
        let id = consuming.id;
        let Some(first) = consuming.consumer.next().await else {
            *slot = None;
            let detail = "RabbitMQ ended the consumer: the queue was deleted, or its node is gone";
            return Err(BrokerError::new(BrokerErrorKind::Destination, OPERATION, detail));
        };
        let first = match first {
            Ok(first) => first,
            Err(error) => {
                *slot = None;
                return Err(during(OPERATION, error));
            }
        };
        // No wait from here on: what is taken out of the consumer is given to the caller.
        let mut deliveries = vec![self.take(id, first)];
        while deliveries.len() < max {
            let Some(Some(Ok(next))) = consuming.consumer.next().now_or_never() else { break };
            deliveries.push(self.take(id, next));
        }
        Ok(deliveries)
    }

    async fn settle(
        &self,
        settlements: Vec<(DeliveryTag, BrokerSettlement)>,
    ) -> Vec<Result<(), BrokerError>> {
        let mut answers = Vec::with_capacity(settlements.len());
        for (tag, settlement) in settlements {
            answers.push(self.settle_one(tag, settlement).await);
        }
        answers
    }
}
