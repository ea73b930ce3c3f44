//! RabbitMQ as a broker of the Mailslot inbox.
//!
//! [`RabbitMq::new`] names the server; [`RabbitMq::receiver`] receives from a [`Queue`], [`RabbitMq::publisher`] publishes to
//! queues and [`RabbitMq::publisher_to`] to an exchange. Nothing connects before it is used. A connection that is lost is made
//! anew by the next call, as every [`Receiver`](mailslot_core::broker::Receiver) does it.

#![warn(missing_docs)]

mod error;
mod link;
mod message;
mod publisher;
mod queue;
mod receiver;

pub use link::RabbitMq;
pub use message::{REASON_HEADER, SESSION_HEADER};
pub use publisher::RabbitPublisher;
pub use queue::{DeadLetters, Queue, QueueKind};
pub use receiver::RabbitReceiver;
