//! A delivery as it is read, before anything is done with it.

use super::Core;
use super::lanes::Lane;
use jiff::Timestamp;
use mailslot_core::broker::{BrokerDelivery, DeliveryTag, Incoming};
use mailslot_core::store::SessionRef;
use mailslot_core::{
    Arrived, ContentType, Contract, DeliveryIdentity, Envelope, FieldError, MessageId, Metadata, NewMessage,
    Payload, Seq, Visibility,
};

/// The contract of a probe that tells whether a subscriber is there. It is answered before the ledger is asked and before the
/// session is looked at, so that a blocked session does not look like a dead subscriber.
pub const HEARTBEAT_CONTRACT: &str = "mailslot.heartbeat";

/// The contract under which a delivery is stored that no mapping could read, where the broker keeps no dead letters.
pub const REJECTED_CONTRACT: &str = "mailslot.rejected";

/// A delivery that was read.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) tag: DeliveryTag,
    pub(super) arrived: Arrived,
    pub(super) content: Content,
}

/// What a delivery turned out to be.
#[derive(Debug)]
pub(super) enum Content {
    /// A message for a handler.
    Message(Box<NewMessage>),
    /// A probe, and where its answer goes.
    Heartbeat { reply_to: Option<String>, correlation_id: Option<String> },
    /// No message: what is wrong, and the delivery as the message that it is kept as.
    Unreadable { problem: FieldError, kept: Box<NewMessage> },
}

impl Item {
    /// Reads a delivery.
    pub(super) fn read(core: &Core, delivery: BrokerDelivery) -> Self {
        let read = incoming(core, &delivery);
        let is_probe = matches!(&read, Ok(incoming) if incoming.contract.name() == HEARTBEAT_CONTRACT);
        let message_id = match &read {
            Ok(incoming) => incoming.message_id.as_deref(),
            Err(_) => delivery.message.message_id.as_deref(),
        };
        let id = core.safety.id_of(message_id, &delivery);
        let identity = if is_probe { None } else { core.identify(id.as_deref()) };
        let read = match read {
            Ok(_) if !is_probe && identity.is_none() && core.safety.requires_identity() => {
                let fix = "let the publisher set a visible one of at most 512 UTF-16 units";
                Err(FieldError::new("message_id", "is missing, blank or too long", fix))
            }
            read => read,
        };
        let content = content(core, read, identity.as_ref(), &delivery);
        let BrokerDelivery { tag, destination, delivery_id, redeliveries, .. } = delivery;
        Self { tag, arrived: Arrived { destination, delivery_id, identity, redeliveries }, content }
    }

    /// What must not be handled at the same time as it.
    pub(super) fn lane(&self) -> Option<Lane> {
        let Content::Message(message) = &self.content else { return None };
        let of_message = || self.arrived.identity.as_ref().map(|one| Lane::Message(one.key()));
        SessionRef::of(message).map(Lane::Session).or_else(of_message)
    }
}

/// Admits a delivery and reads it.
fn incoming(core: &Core, delivery: &BrokerDelivery) -> Result<Incoming, FieldError> {
    core.safety.admit(delivery)?;
    let mut incoming = core.mapping.read(delivery, &core.engine.endpoint)?;
    if core.receiver.capabilities().scheduled {
        // The broker has waited, and its clock decides when that is over.
        incoming.metadata.visibility = Visibility::Immediate;
    }
    core.safety.hear(&mut incoming, &delivery.message.headers)?;
    let visibility: Visibility = incoming.metadata.visibility;
    visibility.check(Timestamp::now())?;
    Ok(incoming)
}

fn content(
    core: &Core,
    read: Result<Incoming, FieldError>,
    identity: Option<&DeliveryIdentity>,
    delivery: &BrokerDelivery,
) -> Content {
    match read {
        Ok(incoming) if incoming.contract.name() == HEARTBEAT_CONTRACT => {
            let message = &delivery.message;
            let correlation_id = message.correlation_id.clone().or_else(|| message.message_id.clone());
            Content::Heartbeat { reply_to: message.reply_to.clone(), correlation_id }
        }
        Ok(Incoming { contract, payload, metadata, .. }) => {
            Content::Message(Box::new(message(contract, payload, metadata, identity)))
        }
        Err(problem) => {
            let metadata = Metadata { endpoint: core.engine.endpoint.clone(), ..Metadata::default() };
            let contract = Contract::new(REJECTED_CONTRACT, 1).expect("it is a valid name");
            let kept = message(contract, as_it_came(delivery), metadata, identity);
            Content::Unreadable { problem, kept: Box::new(kept) }
        }
    }
}

/// The message that a delivery becomes if it is stored: with an id that follows from its identity, if it has one.
fn message(
    contract: Contract,
    payload: Payload,
    metadata: Metadata,
    identity: Option<&DeliveryIdentity>,
) -> NewMessage {
    let mut message = NewMessage::new(contract, payload, metadata);
    message.id = identity.map_or_else(MessageId::generate, |identity| identity.key().stored_id());
    message
}

/// The bytes of what cannot be read, as many as a store takes.
fn as_it_came(delivery: &BrokerDelivery) -> Payload {
    let bytes = &delivery.message.payload;
    let bytes = bytes.slice(..bytes.len().min(mailslot_core::limits::PAYLOAD_BYTES_MAX));
    let given = delivery.message.content_type.as_deref().and_then(|text| ContentType::new(text).ok());
    let unknown = || ContentType::new("application/octet-stream").expect("it is a media type");
    Payload::new(bytes, given.unwrap_or_else(unknown)).expect("it was cut to what a payload may have")
}

/// The envelope that a handler sees of a message that no store holds.
pub(super) fn envelope(message: &NewMessage, now: Timestamp) -> Envelope {
    let NewMessage { id, contract, payload, metadata, .. } = message.clone();
    let Metadata { trace, tenant, session, endpoint, priority, headers, .. } = metadata;
    Envelope {
        seq: Seq(0),
        id,
        endpoint,
        contract,
        payload,
        tenant,
        session,
        idempotency_key: None,
        trace,
        priority,
        headers,
        accepted_at: now,
    }
}
