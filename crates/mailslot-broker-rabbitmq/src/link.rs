//! Connections: made when they are needed, and anew after they were lost.

use crate::error::during;
use crate::publisher::RabbitPublisher;
use crate::queue::Queue;
use crate::receiver::RabbitReceiver;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties};
use mailslot_core::FieldError;
use mailslot_core::broker::{BrokerError, BrokerErrorKind};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a connection may take to be made, if the URL does not say.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);

/// A RabbitMQ server. Clones share its connections: one for receivers and one for publishers, because RabbitMQ slows
/// connections down that publish too fast, and acknowledgements must not wait for that.
#[derive(Clone)]
pub struct RabbitMq {
    receiving: Arc<Link>,
    publishing: Arc<Link>,
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.receiving.fmt(f)
    }
}

impl RabbitMq {
    /// Names a server, such as `amqp://user:password@host:5672/vhost`, where a `/` in the vhost is written `%2f`. Nothing
    /// connects yet. Among its parameters are `heartbeat` in seconds and `connection_timeout` in milliseconds.
    ///
    /// # Errors
    /// It is no such URL. The error does not repeat it, because there is a password in it.
    pub fn new(url: &str) -> Result<Self, FieldError> {
        let uri: AMQPUri = url.parse().map_err(|_| {
            let fix = "write amqp://user:password@host:port/vhost";
            FieldError::new("rabbitmq.url", "is no URL of a RabbitMQ server", fix)
        })?;
        let link = |purpose| Arc::new(Link { uri: uri.clone(), purpose, connection: Mutex::default() });
        Ok(Self { receiving: link("mailslot receiver"), publishing: link("mailslot publisher") })
    }

    /// Receives from a queue. Several receivers share its messages.
    pub fn receiver(&self, queue: Queue) -> RabbitReceiver {
        RabbitReceiver::new(Arc::clone(&self.receiving), self.publisher(), queue)
    }

    /// Publishes to queues by their names.
    pub fn publisher(&self) -> RabbitPublisher {
        self.publisher_to("")
    }

    /// Publishes to an exchange; a destination is a routing key.
    pub fn publisher_to(&self, exchange: impl Into<String>) -> RabbitPublisher {
        RabbitPublisher::new(Arc::clone(&self.publishing), exchange.into())
    }
}

/// A connection that is made when it is needed.
pub(crate) struct Link {
    uri: AMQPUri,
    purpose: &'static str,
    connection: Mutex<Option<Connection>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (&self.uri.authority.host, self.uri.authority.port);
        write!(f, "RabbitMq({host}:{port}/{})", self.uri.vhost)
    }
}

impl Link {
    /// A new channel, on a new connection if there is none that works.
    pub(crate) async fn channel(&self, operation: &'static str) -> Result<Channel, BrokerError> {
        let mut connection = self.connection.lock().await;
        if let Some(connected) = connection.as_ref().filter(|connection| connection.status().connected()) {
            match connected.create_channel().await {
                Ok(channel) => return Ok(channel),
                // It broke meanwhile.
                Err(_) if !connected.status().connected() => {}
                Err(error) => return Err(during(operation, error)),
            }
        }
        let connected = connection.insert(self.connect(operation).await?);
        connected.create_channel().await.map_err(|error| during(operation, error))
    }

    async fn connect(&self, operation: &'static str) -> Result<Connection, BrokerError> {
        let properties = ConnectionProperties::default().with_connection_name(self.purpose.into());
        let asked = self.uri.query.connection_timeout.map(Duration::from_millis);
        let patience = asked.unwrap_or(CONNECT_TIME_MAX);
        let connect = Connection::connect_uri(self.uri.clone(), properties);
        let connected = tokio::time::timeout(patience, connect).await.map_err(|_| {
            let detail = format!("{self:?} did not answer within {patience:?}");
            BrokerError::new(BrokerErrorKind::Unavailable, operation, detail)
        })?;
        connected.map_err(|error| during(operation, error))
    }
}
