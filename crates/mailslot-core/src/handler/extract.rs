//! Extractors: how a handler's arguments come out of a message.

use super::{Context, Extensions, HandlerError};
use crate::codec::{Codec, Payload};
use crate::contract::Message;
use crate::field::FieldError;
use crate::id::{Attempt, MessageId};
use crate::name::{SessionKey, TenantName};
use crate::outcome::Reason;
use crate::store::LeaseToken;
use std::any::type_name;
use std::future::Future;
use std::ops::{Deref, DerefMut};

/// An argument that looks at the surroundings of a message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "not an extractor",
    note = "a handler is an async fn: first the message, then extractors such as `Context`, `State<T>`, `Attempt`",
    note = "implement `FromMessageParts` to make your own"
)]
pub trait FromMessageParts: Sized + Send {
    /// Makes the argument.
    ///
    /// # Errors
    /// An error is the handler's own: it is retried unless it says otherwise.
    fn from_message_parts(context: &Context) -> impl Future<Output = Result<Self, HandlerError>> + Send;

    /// Checks at build time that what the argument needs is registered.
    ///
    /// # Errors
    /// What is missing and how to register it.
    fn check(_extensions: &Extensions) -> Result<(), FieldError> {
        Ok(())
    }
}

/// The message argument of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the message of a handler",
    label = "not a message",
    note = "add `#[derive(Message)]`, or take `Raw` and register the handler with `raw_handler`"
)]
pub trait FromMessage: Sized + Send {
    /// Reads the message.
    ///
    /// # Errors
    /// The payload does not decode: the message is dead-lettered as `undecodable`.
    fn from_message(context: &Context) -> Result<Self, HandlerError>;
}

impl<M: Message> FromMessage for M {
    fn from_message(context: &Context) -> Result<Self, HandlerError> {
        M::Codec::decode(context.envelope().payload.bytes())
            .map_err(|error| HandlerError::permanent(error).reason(Reason::Undecodable))
    }
}

/// The undecoded payload, for handlers of contracts without a Rust type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(pub Payload);

impl FromMessage for Raw {
    fn from_message(context: &Context) -> Result<Self, HandlerError> {
        Ok(Self(context.envelope().payload.clone()))
    }
}

/// A value that the program registered with the builder's `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T> Deref for State<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for State<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Clone + Send + Sync + 'static> FromMessageParts for State<T> {
    async fn from_message_parts(context: &Context) -> Result<Self, HandlerError> {
        let missing =
            || HandlerError::permanent(format!("no state of type {} is registered", type_name::<T>()));
        context.extension::<T>().map(State).ok_or_else(missing)
    }

    fn check(extensions: &Extensions) -> Result<(), FieldError> {
        if extensions.contains::<T>() {
            return Ok(());
        }
        let name = type_name::<T>();
        let problem = format!("has no value of type {name}, which a handler takes as `State<{name}>`");
        Err(FieldError::new("state", problem, "add `.state(value)` to the builder"))
    }
}

macro_rules! part {
    ($type:ty, $context:ident => $value:expr) => {
        impl FromMessageParts for $type {
            async fn from_message_parts($context: &Context) -> Result<Self, HandlerError> {
                Ok($value)
            }
        }
    };
}

part!(Context, context => context.clone());
part!(Attempt, context => context.attempt());
part!(MessageId, context => context.envelope().id);
part!(LeaseToken, context => context.lease());
part!(super::Cancellation, context => context.cancellation().clone());
part!(Option<TenantName>, context => context.envelope().tenant.clone());
part!(Option<SessionKey>, context => context.envelope().session.clone());
