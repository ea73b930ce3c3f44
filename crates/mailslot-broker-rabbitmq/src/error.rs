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

fn refusal(kind: &AMQPErrorKind) -> (BrokerErrorKind, &'static str) {
    use BrokerErrorKind::{Destination, Unavailable, Unexpected};
    match kind {
        AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => {
            (Destination, "RabbitMQ has no such queue or exchange: declare it, or let the receiver do so")
        }
        AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) => (
            Destination,
            "the queue is declared otherwise: name its kind and its limits as they are, or only check it",
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
