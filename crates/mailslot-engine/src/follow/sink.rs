//! Sinks: told before an outcome is settled.

use super::event::OutcomeEvent;
use async_trait::async_trait;
use futures_util::FutureExt;
use mailslot_core::broker::{BrokerMessage, CONTRACT_HEADER, Publisher};
use mailslot_core::handler::BoxError;
use mailslot_core::{ErrorText, Reason, SessionKey};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How long an outcome is waited for to be told: then the message goes on without.
const PATIENCE: Duration = Duration::from_secs(5);

/// The contract of an outcome that is published.
const OUTCOME_CONTRACT: &str = "mailslot.outcome@1";

/// Takes what becomes of messages, each before it is settled: what was told is told again if the process dies in between.
///
/// The store keeps the history of every stored message by itself; this is for those who want it elsewhere, or want what no
/// store keeps, such as duplicates. A sink that fails, panics or takes too long changes nothing for the message: it is logged
/// and counted.
#[async_trait]
pub trait OutcomeSink: Send + Sync + 'static {
    /// Takes one.
    async fn tell(&self, event: &OutcomeEvent) -> Result<(), BoxError>;
}

/// Tells one sink. `false`: it did not take it.
pub(super) async fn tell(sink: &dyn OutcomeSink, event: &OutcomeEvent) -> bool {
    let told = AssertUnwindSafe(sink.tell(event)).catch_unwind();
    let problem = match tokio::time::timeout(PATIENCE, told).await {
        Ok(Ok(Ok(()))) => return true,
        Ok(Ok(Err(error))) => ErrorText::of(error.as_ref()),
        Ok(Err(_)) => ErrorText::new("it panicked"),
        Err(_) => ErrorText::new(format!("it did not answer within {PATIENCE:?}")),
    };
    tracing::warn!(endpoint = %event.endpoint, kind = %event.kind, %problem, "a sink did not take an outcome");
    false
}

/// Writes outcomes into the log, as events of `tracing`: successes as debug, what somebody may have to look at as warnings.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingSink;

#[async_trait]
impl OutcomeSink for TracingSink {
    async fn tell(&self, event: &OutcomeEvent) -> Result<(), BoxError> {
        use super::event::EventKind::{
            Completed, DeadLettered, Deferred, Failed, Pending, Skipped, Unsupported,
        };
        let OutcomeEvent { endpoint, contract, subject, attempt, kind, reason, error, .. } = event;
        let contract = contract.as_ref().map(tracing::field::display);
        let (id, delivered) = (subject.stored.map(tracing::field::display), subject.delivered.as_deref());
        let (reason, error) = (reason.map(Reason::as_str), error.as_ref().map(tracing::field::display));
        match kind {
            Completed | Deferred | Skipped | Pending => {
                tracing::debug!(%endpoint, contract, id, delivered, attempt, %kind, reason, error, "an outcome");
            }
            Failed | DeadLettered | Unsupported => {
                tracing::warn!(%endpoint, contract, id, delivered, attempt, %kind, reason, error, "an outcome");
            }
        }
        Ok(())
    }
}

/// Publishes outcomes as JSON messages of the contract `mailslot.outcome@1`, in the session of their message if it has one.
#[derive(Debug)]
pub struct PublishingSink<P> {
    publisher: P,
    destination: Arc<str>,
}

impl<P: Publisher> PublishingSink<P> {
    /// Publishes to this destination.
    pub fn new(publisher: P, destination: impl Into<Arc<str>>) -> Self {
        Self { publisher, destination: destination.into() }
    }
}

#[async_trait]
impl<P: Publisher> OutcomeSink for PublishingSink<P> {
    async fn tell(&self, event: &OutcomeEvent) -> Result<(), BoxError> {
        let answers = self.publisher.publish(&self.destination, vec![message(event)]).await;
        Ok(answers.into_iter().collect::<Result<(), _>>()?)
    }
}

fn message(event: &OutcomeEvent) -> BrokerMessage {
    let OutcomeEvent { endpoint, contract, subject, session, blocked_by, attempt, kind, reason, error } =
        event;
    let content = serde_json::json!({
        "endpoint": endpoint.as_str(),
        "contract": contract.as_ref().map(ToString::to_string),
        "message_id": subject.delivered.as_deref(),
        "stored_id": subject.stored,
        "session": session.as_ref().map(SessionKey::as_str),
        "blocked_by": blocked_by,
        "attempt": attempt,
        "outcome": kind.as_str(),
        "reason": reason.map(Reason::as_str),
        "error": error.as_ref().map(ErrorText::as_str),
    });
    BrokerMessage {
        session: session.as_ref().map(|session| session.as_str().to_owned()),
        correlation_id: subject.delivered.as_deref().map(str::to_owned),
        content_type: Some("application/json".to_owned()),
        headers: BTreeMap::from([(CONTRACT_HEADER.to_owned(), OUTCOME_CONTRACT.to_owned())]),
        payload: content.to_string().into(),
        ..BrokerMessage::default()
    }
}
