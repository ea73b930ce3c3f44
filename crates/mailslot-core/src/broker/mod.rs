//! What a message broker must do: hand over deliveries and take their settlements, and take messages.
//!
//! [`Receiver`] and [`Publisher`] speak of deliveries, never of channels, offsets or receipts. What a broker cannot do
//! is declared in [`BrokerCapabilities`]. [`MemoryBroker`] is the model.

mod error;
mod mapping;
mod memory;

pub use error::{BrokerError, BrokerErrorKind};
pub use mapping::{CONTRACT_HEADER, CloudEventsMapping, HEADERS_OMITTED, Incoming, Mapping, NativeMapping};
pub use memory::{MemoryBroker, MemoryPublisher, MemoryReceiver};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a broker can do beyond what its traits demand. Chooses the cases of the conformance suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent ability")]
pub struct BrokerCapabilities {
    /// The kind of broker, such as `memory`.
    pub backend: &'static str,
    /// A published message survives the death of the broker.
    pub durable: bool,
    /// Messages of one session are handed out one at a time, in order.
    pub sessions: bool,
    /// A message can be published to be handed out later.
    pub scheduled: bool,
    /// A delivery can be given back to be handed out later. Without it, one that is given back comes again at once.
    pub delayed_return: bool,
    /// A delivery has to be settled within a time, which can be extended.
    pub extend: bool,
    /// A message that comes again has the delivery id that it had before.
    pub stable_delivery_id: bool,
    /// A dead letter stays with the broker, where its own tools see it.
    pub dead_letter: bool,
    /// A delivery says how often it was handed out before.
    pub redelivery_count: bool,
}

impl BrokerCapabilities {
    /// A broker of this kind that can do nothing extra yet; switch on what it can.
    pub const fn none(backend: &'static str) -> Self {
        Self {
            backend,
            durable: false,
            sessions: false,
            scheduled: false,
            delayed_return: false,
            extend: false,
            stable_delivery_id: false,
            dead_letter: false,
            redelivery_count: false,
        }
    }
}

/// A message as brokers carry it. Nothing in it is trusted: its publisher wrote it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BrokerMessage {
    /// The publisher's id of the message.
    pub message_id: Option<String>,
    /// The publisher's ordering key.
    pub session: Option<String>,
    /// What the payload is.
    pub content_type: Option<String>,
    /// What its publisher relates it to: of an answer, the question.
    pub correlation_id: Option<String>,
    /// Where its publisher expects an answer.
    pub reply_to: Option<String>,
    /// Not to be handed out before this instant, by the broker's clock.
    pub due: Option<Timestamp>,
    /// Application headers.
    pub headers: BTreeMap<String, String>,
    /// The content.
    pub payload: Bytes,
}

impl std::fmt::Debug for BrokerMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerMessage")
            .field("message_id", &self.message_id)
            .field("session", &self.session)
            .field("due", &self.due)
            .field("payload_bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

/// Names a delivery to the receiver that handed it over. It means nothing to any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryTag(pub u64);

/// One arrival of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerDelivery {
    /// What to settle it by.
    pub tag: DeliveryTag,
    /// The broker's own id of the message, not under the publisher's control. The same on every redelivery, where the broker
    /// [can tell](BrokerCapabilities::stable_delivery_id).
    pub delivery_id: String,
    /// The queue, topic or subscription that it came from.
    pub destination: String,
    /// How often it was handed out before, where the broker counts.
    pub redeliveries: Option<u32>,
    /// The message.
    pub message: BrokerMessage,
}

/// What is to become of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerSettlement {
    /// It is handled or stored: the broker forgets it.
    Ack,
    /// It goes back and is handed out again.
    Return {
        /// Not before so much time has passed; zero: at once. A broker that
        /// [cannot wait](BrokerCapabilities::delayed_return) hands it out at once.
        after: Duration,
    },
    /// It can never be handled: it goes to the broker's dead letters, or is reported where there are none.
    DeadLetter {
        /// Why, for people. Never contains the payload.
        reason: String,
    },
}

/// Hands over deliveries of one destination and takes their settlements.
///
/// It keeps its connection alive by itself: after an error that [is transient](BrokerError::is_transient), the next call
/// connects anew. Whoever calls it only has to wait and to call again.
///
/// Settlements come in any order. A broker that only knows how far somebody has read settles what is settled without a gap, and
/// keeps for itself what was given back.
#[async_trait]
pub trait Receiver: Send + Sync + 'static {
    /// What its broker can do.
    fn capabilities(&self) -> BrokerCapabilities;

    /// Connects and makes sure that the destination is there and as it has to be, so that a wrong configuration fails at
    /// start. Repeating it does no harm.
    ///
    /// # Errors
    /// `Destination`: it is missing, other than expected, or not to be used with these credentials.
    async fn open(&self) -> Result<(), BrokerError>;

    /// Waits for at least one delivery and gives at most `max`.
    ///
    /// # Errors
    /// `Invalid`: `max` is 0. Deliveries that were handed over before may be lost with the connection: they are handed out
    /// again.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: what it would have given is handed out again.
    async fn receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError>;

    /// Settles deliveries. One answer for each, in order. A delivery that is not settled when its receiver is dropped
    /// is handed out again.
    async fn settle(&self, settlements: Vec<(DeliveryTag, BrokerSettlement)>)
    -> Vec<Result<(), BrokerError>>;

    /// Says that deliveries are still being handled, where they have to be settled [within a time](BrokerCapabilities::extend).
    /// One answer for each, in order; `DeliveryLost`: the time is over, and somebody else may have it.
    async fn extend(&self, tags: Vec<DeliveryTag>) -> Vec<Result<(), BrokerError>> {
        tags.iter().map(|_| Ok(())).collect()
    }
}

/// Takes messages for a destination. Keeps its connection alive by itself, as a [`Receiver`] does.
#[async_trait]
pub trait Publisher: Send + Sync + 'static {
    /// What its broker can do.
    fn capabilities(&self) -> BrokerCapabilities;

    /// Connects, so that a wrong configuration fails at start. Repeating it does no harm.
    async fn open(&self) -> Result<(), BrokerError>;

    /// Publishes messages in order. One answer for each; `Ok` means that the broker has it, and with a failed connection
    /// nobody knows.
    ///
    /// # Errors
    /// `Destination`: no queue takes it. `Invalid`: it passes a bound, or is to be due later at a broker that has no
    /// [schedule](BrokerCapabilities::scheduled).
    async fn publish(&self, destination: &str, messages: Vec<BrokerMessage>) -> Vec<Result<(), BrokerError>>;
}
