//! The driver's errors, mapped in one place. Codes: AMQP 0-9-1 reference, "Constants".

use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::{Error, ErrorKind};
use mailslot_core::broker::{BrokerError, BrokerErrorKind};

/// Maps an error of the driver.
pub(crate) fn during(operation: &'static str, error: Error) -> BrokerError {
    let (kind, detail) = match error.kind() {
        ErrorKind::IOError(_)
        | ErrorKind::RuntimeShutdownError(_)
        | ErrorKind::InvalidConnectionState(_)
        | ErrorKind::InvalidChannelState(..)
        | ErrorKind::InvalidChannel(_)
        | ErrorKind::MissingHeartbeatError => {
            (BrokerErrorKind::Unavailable, "the connection to RabbitMQ is not there")
        }
        ErrorKind::ProtocolError(refused) => refusal(refused.kind()),
        _ => (BrokerErrorKind::Unexpected, "something unforeseen happened between us and RabbitMQ"),
    };
    BrokerError::new(kind, operation, detail).because(error)
}

/// Maps an error of a declaration, where a precondition that failed is about the queue.
pub(crate) fn while_declaring(operation: &'static str, error: Error) -> BrokerError {
    let is_otherwise = matches!(error.kind(), ErrorKind::ProtocolError(refused)
        if *refused.kind() == AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED));
    if !is_otherwise {
        return during(operation, error);
    }
    let detail =
        "the queue is declared otherwise: name its kind and its limits as they are, or only check it";
    BrokerError::new(BrokerErrorKind::Destination, operation, detail).because(error)
}

fn refusal(kind: &AMQPErrorKind) -> (BrokerErrorKind, &'static str) {
    use BrokerErrorKind::{Destination, Unavailable, Unexpected};
    match kind {
        AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => {
            (Destination, "RabbitMQ has no such queue or exchange: declare it, or let the receiver do so")
        }
        AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) => (
            Unavailable,
            "RabbitMQ ended the channel: a delivery was in hand for longer than its `consumer_timeout`, or a message is \
             larger than its `max_message_size`",
        ),
        AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)
        | AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED) => (
            Destination,
            "RabbitMQ does not allow it: look at the user, its password, its permissions and the vhost",
        ),
        AMQPErrorKind::Soft(AMQPSoftError::RESOURCELOCKED) => {
            (Destination, "another connection has the queue for itself")
        }
        AMQPErrorKind::Hard(
            AMQPHardError::CONNECTIONFORCED | AMQPHardError::INTERNALERROR | AMQPHardError::RESOURCEERROR,
        ) => (Unavailable, "RabbitMQ ended the connection"),
        _ => (Unexpected, "RabbitMQ refused something unforeseen"),
    }
}

/// A value that AMQP cannot carry.
pub(crate) fn too_long(operation: &'static str, field: &str) -> BrokerError {
    let detail = format!("`{field}` is longer than 255 bytes, which is all that AMQP carries: shorten it");
    BrokerError::new(BrokerErrorKind::Invalid, operation, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::protocol::AMQPError;

    #[test]
    fn a_failed_precondition_is_about_the_queue_only_where_it_is_declared() {
        let failed = || {
            Error::from(ErrorKind::ProtocolError(AMQPError::new(
                AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED),
                "delivery acknowledgement timed out".into(),
            )))
        };
        assert_eq!(while_declaring("open", failed()).kind(), BrokerErrorKind::Destination);
        assert!(during("receive", failed()).is_transient());
    }
}
