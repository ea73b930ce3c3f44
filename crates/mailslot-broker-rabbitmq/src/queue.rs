//! What a queue has to be, declared or checked.

use crate::error::while_declaring;
use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use mailslot_core::FieldError;
use mailslot_core::broker::BrokerError;

/// How often RabbitMQ hands a message out again before it gives it up by itself: a last net. Everything that goes back counts,
/// also while a store is away, so a small number would turn an outage into dead letters.
const DELIVERY_LIMIT: u32 = 1_000_000;

/// How many messages RabbitMQ sends ahead to a receiver.
const PREFETCH: u16 = 400;

/// The kinds of queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueKind {
    /// Replicated, and counts how often it hands a message out.
    #[default]
    Quorum,
    /// On one node; durable.
    Classic,
}

/// A queue to receive from, and what it has to be.
///
/// By default it is declared as a durable quorum queue, together with one for its dead letters, `<name>.dead-letters`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "give it to `RabbitMq::receiver`"]
pub struct Queue {
    pub(crate) name: ShortString,
    pub(crate) prefetch: u16,
    pub(crate) dead_letters: DeadLetters,
    kind: QueueKind,
    declares: bool,
    single_active_consumer: bool,
    delivery_limit: u32,
}

/// Where dead letters go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The exchange; empty for the one that knows every queue by its name.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// Whether `routing_key` names a queue that is declared, too.
    pub declares: bool,
}

impl Queue {
    /// A quorum queue of this name.
    ///
    /// # Errors
    /// The name is blank or longer than 240 bytes, which leaves room for that of its dead letters.
    pub fn new(name: impl Into<String>) -> Result<Self, FieldError> {
        let name = name.into();
        if name.trim().is_empty() || name.len() > 240 {
            let fix = "write a name of 1 to 240 bytes";
            return Err(FieldError::new("rabbitmq.queue", "is blank or too long", fix));
        }
        let routing_key = format!("{name}.dead-letters");
        Ok(Self {
            name: ShortString::from(name),
            prefetch: PREFETCH,
            dead_letters: DeadLetters { exchange: String::new(), routing_key, declares: true },
            kind: QueueKind::default(),
            declares: true,
            single_active_consumer: false,
            delivery_limit: DELIVERY_LIMIT,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// What kind of queue it is.
    pub fn kind(mut self, kind: QueueKind) -> Self {
        self.kind = kind;
        self
    }

    /// Declares nothing: the queue has to be there. For servers whose queues somebody else sets up, and for users who may
    /// not configure.
    pub fn only_checked(mut self) -> Self {
        self.declares = false;
        self.dead_letters.declares = false;
        self
    }

    /// `prefetch`: how many messages RabbitMQ sends ahead. Default 400. With 0 it sends all that it has, which is refused.
    pub fn prefetch(mut self, messages: u16) -> Self {
        self.prefetch = messages.max(1);
        self
    }

    /// `x-single-active-consumer`: RabbitMQ hands messages out to one receiver only, and to another one when that is gone. It
    /// keeps the order of a queue across processes.
    pub fn single_active_consumer(mut self) -> Self {
        self.single_active_consumer = true;
        self
    }

    /// `x-delivery-limit` of a quorum queue: how often a message may come back before RabbitMQ dead-letters it by itself.
    /// Default 1,000,000; whatever goes back counts, also while the store is away.
    pub fn delivery_limit(mut self, times: u32) -> Self {
        self.delivery_limit = times;
        self
    }

    /// Where dead letters go, instead of `<name>.dead-letters`.
    pub fn dead_letters(mut self, dead_letters: DeadLetters) -> Self {
        self.dead_letters = dead_letters;
        self
    }

    /// Whether RabbitMQ counts how often it hands a message out.
    pub(crate) fn counts_deliveries(&self) -> bool {
        self.kind == QueueKind::Quorum
    }

    /// Declares the queue and that of its dead letters, or sees that they are there.
    pub(crate) async fn provide(
        &self,
        channel: &Channel,
        operation: &'static str,
    ) -> Result<(), BrokerError> {
        let declared = |error| while_declaring(operation, error);
        if self.dead_letters.declares {
            let name = ShortString::try_new(self.dead_letters.routing_key.clone());
            let name = name.map_err(|_| crate::error::too_long(operation, "dead_letters.routing_key"))?;
            let arguments = self.kind_argument();
            channel.queue_declare(name, QueueDeclareOptions::durable(), arguments).await.map_err(declared)?;
        }
        let (options, arguments) = if self.declares {
            (QueueDeclareOptions::durable(), self.arguments())
        } else {
            (QueueDeclareOptions { passive: true, ..QueueDeclareOptions::durable() }, FieldTable::default())
        };
        channel.queue_declare(self.name.clone(), options, arguments).await.map(|_| ()).map_err(declared)
    }

    fn kind_argument(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        let kind = match self.kind {
            QueueKind::Quorum => "quorum",
            QueueKind::Classic => "classic",
        };
        arguments.insert("x-queue-type".into(), text(kind));
        arguments
    }

    fn arguments(&self) -> FieldTable {
        let DeadLetters { exchange, routing_key, .. } = &self.dead_letters;
        let mut arguments = self.kind_argument();
        // What RabbitMQ gives up by itself goes there, too.
        arguments.insert("x-dead-letter-exchange".into(), text(exchange));
        arguments.insert("x-dead-letter-routing-key".into(), text(routing_key));
        if self.counts_deliveries() {
            arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(self.delivery_limit.into()));
        }
        if self.single_active_consumer {
            arguments.insert("x-single-active-consumer".into(), AMQPValue::Boolean(true));
        }
        arguments
    }
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leaves_room_for_that_of_its_dead_letters() {
        for wrong in ["", " ", &"x".repeat(241)] {
            assert_eq!(Queue::new(wrong).unwrap_err().field(), "rabbitmq.queue");
        }
        let longest = Queue::new("x".repeat(240)).unwrap();
        assert!(longest.dead_letters.routing_key.len() <= 255);
    }

    #[test]
    fn what_a_queue_has_to_be_is_in_its_arguments() {
        let names = |queue: &Queue| {
            queue.arguments().inner().keys().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
        };
        let quorum = Queue::new("orders").unwrap();
        let mut expected =
            vec!["x-dead-letter-exchange", "x-dead-letter-routing-key", "x-delivery-limit", "x-queue-type"];
        assert_eq!(names(&quorum), expected);
        expected.remove(2);
        assert_eq!(names(&quorum.clone().kind(QueueKind::Classic)), expected);
        assert!(names(&quorum.single_active_consumer()).contains(&"x-single-active-consumer".to_owned()));
    }
}
