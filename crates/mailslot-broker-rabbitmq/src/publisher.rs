//! Publishing with confirms: `Ok` means that RabbitMQ has the message, in a queue.

use crate::error::{during, too_long};
use crate::link::Link;
use crate::message::properties;
use crate::receiver::CAPABILITIES;
use async_trait::async_trait;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, PublisherConfirm};
use mailslot_core::broker::{BrokerCapabilities, BrokerError, BrokerErrorKind, BrokerMessage, Publisher};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

const OPERATION: &str = "publish";

/// How many messages may wait for their confirms: enough to hide the way there and back, few enough to bound the memory.
const WINDOW: usize = 256;

/// How long such messages may take together, their confirms included: RabbitMQ lets publishers wait while it is short of
/// memory or disk.
const WINDOW_TIME_MAX: Duration = Duration::from_secs(30);

/// Publishes to queues, or to one exchange. Every message is persistent and has to reach a queue (`mandatory`).
pub struct RabbitPublisher {
    link: Arc<Link>,
    exchange: String,
    channel: Mutex<Option<Channel>>,
}

impl fmt::Debug for RabbitPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RabbitPublisher");
        out.field("server", &self.link).field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

impl RabbitPublisher {
    pub(crate) fn new(link: Arc<Link>, exchange: String) -> Self {
        Self { link, exchange, channel: Mutex::default() }
    }

    /// The channel, or a new one if it is gone. Callers share it and publish side by side.
    async fn channel(&self, operation: &'static str) -> Result<Channel, BrokerError> {
        let mut channel = self.channel.lock().await;
        if let Some(channel) = channel.as_ref().filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let new = self.link.channel(operation).await?;
        let confirms = new.confirm_select(ConfirmSelectOptions::default()).await;
        confirms.map_err(|error| during(operation, error))?;
        Ok(channel.insert(new).clone())
    }

    /// Publishes to an exchange of its own choice.
    pub(crate) async fn publish_to(
        &self,
        (exchange, routing_key): (&str, &str),
        messages: Vec<BrokerMessage>,
    ) -> Vec<Result<(), BrokerError>> {
        let short = |text: &str, field| ShortString::try_new(text).map_err(|_| too_long(OPERATION, field));
        let target = short(exchange, "exchange")
            .and_then(|exchange| Ok((exchange, short(routing_key, "destination")?)));
        let opened = match target {
            Ok(target) => self.channel(OPERATION).await.map(|channel| (channel, target)),
            Err(error) => Err(error),
        };
        let (channel, (exchange, routing_key)) = match opened {
            Ok(opened) => opened,
            Err(error) => return messages.iter().map(|_| Err(again(&error))).collect(),
        };
        let mut answers = Vec::with_capacity(messages.len());
        for window in messages.chunks(WINDOW) {
            let end = Instant::now() + WINDOW_TIME_MAX;
            let mut sent = Vec::with_capacity(window.len());
            for message in window {
                let sending = send(&channel, exchange.clone(), routing_key.clone(), message);
                sent.push(before(end, sending).await);
            }
            for confirm in sent {
                answers.push(match confirm {
                    Ok(confirm) => before(end, confirmed(confirm)).await,
                    Err(error) => Err(error),
                });
            }
        }
        answers
    }
}

#[async_trait]
impl Publisher for RabbitPublisher {
    fn capabilities(&self) -> BrokerCapabilities {
        CAPABILITIES
    }

    async fn open(&self) -> Result<(), BrokerError> {
        self.channel("open").await.map(|_| ())
    }

    async fn publish(&self, destination: &str, messages: Vec<BrokerMessage>) -> Vec<Result<(), BrokerError>> {
        self.publish_to((&self.exchange, destination), messages).await
    }
}

async fn send(
    channel: &Channel,
    exchange: ShortString,
    routing_key: ShortString,
    message: &BrokerMessage,
) -> Result<PublisherConfirm, BrokerError> {
    let properties = properties(message)?;
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let sent = channel.basic_publish(exchange, routing_key, options, &message.payload, properties).await;
    sent.map_err(|error| during(OPERATION, error))
}

async fn confirmed(confirm: PublisherConfirm) -> Result<(), BrokerError> {
    let problem = |kind, detail: &str| Err(BrokerError::new(kind, OPERATION, detail));
    match confirm.await {
        Ok(Confirmation::Ack(None)) => Ok(()),
        Ok(Confirmation::Ack(Some(_))) => problem(
            BrokerErrorKind::Destination,
            "no queue takes the message: declare the queue, or bind it to the exchange by this routing key",
        ),
        Ok(Confirmation::Nack(_) | Confirmation::NotRequested) => {
            problem(BrokerErrorKind::Unavailable, "RabbitMQ did not take the message: the queue may be full")
        }
        Err(error) => Err(during(OPERATION, error)),
    }
}

/// Writing waits, too, while RabbitMQ takes nothing.
async fn before<T>(
    end: Instant,
    work: impl Future<Output = Result<T, BrokerError>>,
) -> Result<T, BrokerError> {
    tokio::time::timeout_at(end, work).await.unwrap_or_else(|_| {
        let detail =
            "RabbitMQ did not confirm in time, and may have the message: look for an alarm of memory or disk";
        Err(BrokerError::new(BrokerErrorKind::Unavailable, OPERATION, detail))
    })
}

/// The same error for another message.
fn again(error: &BrokerError) -> BrokerError {
    BrokerError::new(error.kind(), OPERATION, error.to_string())
}
