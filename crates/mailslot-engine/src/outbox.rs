//! Publishing from an inbox: an endpoint whose handler gives its messages to a broker, and messages that a handler publishes by
//! itself under ids that do not change when it runs again.

use crate::coalesce::{Coalescer, Shared, Size};
use crate::handler::Handler;
use futures_util::future::BoxFuture;
use mailslot_core::broker::{BrokerError, BrokerErrorKind, BrokerMessage, NativeMapping, Publisher};
use mailslot_core::{
    CausationId, Context, CorrelationId, EffectId, Envelope, FieldError, HandlerError, Message, Metadata,
    NewMessage, Raw, Trace,
};
use std::fmt;
use std::sync::Arc;

type DestinationOf = Arc<dyn Fn(&Envelope) -> Arc<str> + Send + Sync>;

/// A handler that publishes what it gets, as it is stored: with the message's id, session, correlation, trace and headers.
///
/// Put it on an endpoint of its own and accept into that, in your own transaction if the store can: a committed accept is
/// published at least once. Messages of a session are published in their order.
///
/// ```no_run
/// # use mailslot_core::{MemoryStore, broker::MemoryBroker};
/// use mailslot_engine::{Dispatcher, HandlerOptions, Inbox};
///
/// # fn build(broker: &MemoryBroker) -> Result<(), mailslot_engine::BuildError> {
/// let outbox = Inbox::builder(MemoryStore::new())
///     .endpoint("outbox")
///     .accept_any_contract()
///     .raw_handler_for(|_| true, Dispatcher::new(broker.publisher(), "orders").handler(), HandlerOptions::new())
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Dispatcher {
    calls: Arc<Coalescer<Publishes>>,
    destination_of: DestinationOf,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dispatcher")
    }
}

impl Dispatcher {
    /// Publishes everything to one destination.
    pub fn new(publisher: impl Publisher, destination: impl Into<Arc<str>>) -> Self {
        let destination = destination.into();
        Self::by(publisher, move |_| Arc::clone(&destination))
    }

    /// Publishes each message to the destination that is chosen for it.
    pub fn by(
        publisher: impl Publisher,
        destination_of: impl Fn(&Envelope) -> Arc<str> + Send + Sync + 'static,
    ) -> Self {
        let calls = Coalescer::new(Publishes { publisher: Arc::new(publisher) });
        Self { calls: Arc::new(calls), destination_of: Arc::new(destination_of) }
    }

    /// The handler. Those that run at the same time share a call of the publisher.
    ///
    /// A broker that is away or has no such destination is tried again, as the retry policy says; a message that it cannot
    /// carry is dead-lettered.
    pub fn handler(&self) -> impl Handler<Raw, (Context,)> + use<> {
        let this = self.clone();
        move |_: Raw, context: Context| -> BoxFuture<'static, Result<(), HandlerError>> {
            let this = this.clone();
            Box::pin(async move { this.publish(context.envelope()).await })
        }
    }

    async fn publish(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        let destination = (self.destination_of)(envelope);
        match self.calls.ask((destination, message(envelope))).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) if error.kind() == BrokerErrorKind::Invalid => {
                Err(HandlerError::permanent(error))
            }
            Some(Err(error)) => Err(HandlerError::retryable(error)),
            None => Err(HandlerError::retryable("the runtime is ending")),
        }
    }
}

fn message(envelope: &Envelope) -> BrokerMessage {
    let metadata = Metadata {
        trace: envelope.trace.clone(),
        session: envelope.session.clone(),
        headers: envelope.headers.clone(),
        ..Metadata::default()
    };
    NativeMapping::write(&envelope.contract, &envelope.payload, &metadata, envelope.id.to_string())
}

struct Publishes {
    publisher: Arc<dyn Publisher>,
}

impl Shared for Publishes {
    type Item = (Arc<str>, BrokerMessage);
    type Answer = Result<(), BrokerError>;

    const MAX: Size = Size { parts: 256, bytes: 8 * 1024 * 1024 };

    fn size(&self, (_, message): &Self::Item) -> Size {
        Size { parts: 1, bytes: message.payload.len() }
    }

    fn at_once(&self) -> usize {
        1
    }

    /// Publishes run by run: neighbours with one destination share a call, and nothing is reordered.
    async fn call(&self, items: Vec<Self::Item>) -> Vec<Self::Answer> {
        let mut answers = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while let Some((destination, first)) = items.next() {
            let mut run = vec![first];
            while let Some((_, next)) = items.next_if(|(other, _)| *other == destination) {
                run.push(next);
            }
            answers.extend(self.publisher.publish(&destination, run).await);
        }
        answers
    }
}

/// Publishes a message from a handler, as a part of what it does with its own one. It demands an [`EffectId`], which is the same
/// when the handler runs again: whoever receives the message twice can tell.
///
/// The message continues the trace and the conversation of the one that is handled, which is its cause.
///
/// # Errors
/// The message cannot be encoded, or the broker did not take it.
pub async fn publish_from_context<M: Message>(
    publisher: &dyn Publisher,
    destination: &str,
    context: &Context,
    message: &M,
    effect: &EffectId,
) -> Result<(), HandlerError> {
    let metadata = Metadata {
        trace: following(context.envelope()).map_err(HandlerError::permanent)?,
        session: context.envelope().session.clone(),
        ..Metadata::default()
    };
    let message = NewMessage::encode(message, metadata).map_err(HandlerError::permanent)?;
    let written =
        NativeMapping::write(&message.contract, &message.payload, &message.metadata, effect.to_string());
    let answers = publisher.publish(destination, vec![written]).await;
    answers.into_iter().collect::<Result<(), _>>().map_err(HandlerError::retryable)
}

/// The place of a message that follows from another one.
fn following(envelope: &Envelope) -> Result<Trace, FieldError> {
    let id = envelope.id.to_string();
    let conversation = envelope.trace.correlation().cloned();
    let correlation = conversation.map_or_else(|| CorrelationId::new(&id), Ok)?;
    Trace::from_parts(envelope.trace.context().cloned(), Some(correlation), Some(CausationId::new(&id)?))
}
