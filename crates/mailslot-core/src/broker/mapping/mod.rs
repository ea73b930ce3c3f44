//! From what a broker delivers to a message with a contract, and back.

mod cloud_events;
mod native;

pub use cloud_events::CloudEventsMapping;
pub use native::{CONTRACT_HEADER, HEADERS_OMITTED, NativeMapping};

use super::BrokerDelivery;
use crate::codec::Payload;
use crate::contract::Contract;
use crate::field::FieldError;
use crate::metadata::Metadata;
use crate::name::EndpointName;
use std::fmt;

/// A delivery as the engine takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// What the message is.
    pub contract: Contract,
    /// Its content.
    pub payload: Payload,
    /// The publisher's id of it, unchecked: what a redelivery is recognised by.
    pub message_id: Option<String>,
    /// What travels beside the content.
    pub metadata: Metadata,
}

/// Reads what a broker delivered. What a publisher wrote is checked here like any other input.
pub trait Mapping: fmt::Debug + Send + Sync + 'static {
    /// Reads a delivery on `endpoint`.
    ///
    /// # Errors
    /// It is no message: which part is missing or wrong, and how its publisher mends it. Never with what it contains.
    fn read(&self, delivery: &BrokerDelivery, endpoint: &EndpointName) -> Result<Incoming, FieldError>;
}
