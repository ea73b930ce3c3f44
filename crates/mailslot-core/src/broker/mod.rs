//! What a message broker must do: hand over deliveries and take their settlements, and take messages.
//!
//! [`Receiver`] and [`Publisher`] speak of deliveries, never of channels, offsets or receipts. What a broker cannot do
//! is declared in [`BrokerCapabilities`]. [`MemoryBroker`] is the model.

mod error;
mod memory;

pub use error::{BrokerError, BrokerErrorKind};
pub use memory::{MemoryBroker, MemoryPublisher, MemoryReceiver};

use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;

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
    /// A message can be handed out later, by its publisher's or its receiver's wish.
    pub scheduled: bool,
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
    /// The broker's own id of the message, the same on every redelivery: not under the publisher's control.
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
    Return,
    /// It can never be handled: it goes to the broker's dead letters, or is reported where there are none.
    DeadLetter {
        /// Why, for people. Never contains the payload.
        reason: String,
    },
}

/// Hands over deliveries of one destination and takes their settlements.
#[async_trait]
pub trait Receiver: Send + Sync + 'static {
    /// What its broker can do.
    fn capabilities(&self) -> BrokerCapabilities;

    /// Waits for at least one delivery and gives at most `max`.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: what it would have given is handed out again.
    async fn receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError>;

    /// Settles deliveries. One answer for each, in order. A delivery that is not settled when its receiver is dropped
    /// is handed out again.
    async fn settle(&self, settlements: Vec<(DeliveryTag, BrokerSettlement)>)
    -> Vec<Result<(), BrokerError>>;
}

/// Takes messages for a destination.
#[async_trait]
pub trait Publisher: Send + Sync + 'static {
    /// What its broker can do.
    fn capabilities(&self) -> BrokerCapabilities;

    /// Publishes messages in order. One answer for each; `Ok` means that the broker has it.
    async fn publish(&self, destination: &str, messages: Vec<BrokerMessage>) -> Vec<Result<(), BrokerError>>;
}
