//! One delivery, from what is known of it to what the broker is told.
//!
//! The order is: look up, session, handler, record, settle. Everything that a crash could lose is in the store before the
//! broker forgets its copy.

use super::item::Content;
use super::{Core, SubscriberCounts, heartbeat};
use crate::follow::{EventKind, OutcomeEvent};
use mailslot_core::arrival::{Arrival, Receipted};
use mailslot_core::broker::{BrokerErrorKind, BrokerSettlement, DeliveryTag};
use mailslot_core::store::{Concluded, Conclusion, Question, SessionRef, Stored};
use mailslot_core::{
    Arrived, Cancellation, Disposition, ErrorText, FieldError, NewMessage, Reason, Status, StoreError,
    Visibility,
};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a settlement may take. No stop shortens it; one that takes longer is left to the broker, which delivers again.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);

/// How long a delivery rests that cannot be handled just now, because somebody else has it or its session is full.
const REST: Duration = Duration::from_secs(1);

/// How often a delivery may come back before its attempts are counted: the number that brokers use for the same suspicion. An
/// outage of the store makes deliveries come back, too, and does them no harm by it.
const TOO_OFTEN: u32 = 10;

/// A delivery in its turn.
pub(super) struct Delivering {
    pub(super) core: std::sync::Arc<Core>,
    pub(super) tag: DeliveryTag,
    pub(super) arrived: Arrived,
    pub(super) cancellation: Cancellation,
    /// Turns true when the grace time is over.
    pub(super) abort: watch::Receiver<bool>,
    /// What those who follow are told about it.
    pub(super) event: Option<OutcomeEvent>,
}

/// How a delivery was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The broker is done with it.
    Settled,
    /// The broker delivers it again.
    GaveBack,
}

/// The store failed: the delivery goes back to the broker, after this time.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreFailed(Duration);

/// What the broker is to be told.
pub(super) type Settling = Result<BrokerSettlement, StoreFailed>;

/// Does with a delivery what is to be done, and settles it.
pub(super) async fn deliver(mut delivering: Delivering, content: Content) -> Left {
    let settling = match content {
        Content::Message(message) => {
            delivering.event = Some(OutcomeEvent::of_arrival(&message, &delivering.arrived));
            delivering.received();
            delivering.message(*message).await
        }
        Content::Heartbeat { reply_to, correlation_id } => {
            heartbeat::answer(&delivering.core, reply_to, correlation_id).await;
            Ok(BrokerSettlement::Ack)
        }
        Content::Unreadable { problem, kept } => {
            let event = OutcomeEvent::of_arrival(&kept, &delivering.arrived);
            delivering.event = Some(OutcomeEvent { contract: None, ..event });
            delivering.received();
            delivering.unreadable(&problem, *kept).await
        }
    };
    // A store that failed is never read as "handled before".
    let settlement = settling.unwrap_or_else(|StoreFailed(after)| BrokerSettlement::Return { after });
    delivering.core.settle(delivering.tag, settlement).await
}

impl Core {
    /// Tells the broker, whatever else is going on.
    pub(super) async fn settle(&self, tag: DeliveryTag, settlement: BrokerSettlement) -> Left {
        let left = match &settlement {
            BrokerSettlement::Return { .. } => Left::GaveBack,
            _ => Left::Settled,
        };
        if left == Left::GaveBack {
            self.counters.add(|counts| counts.returned += 1);
        }
        let endpoint = &self.engine.endpoint;
        match tokio::time::timeout(SETTLE_PATIENCE, self.calls.settle(tag, settlement)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.counters.add(|counts| counts.broker_errors += 1);
                // What was concluded is known when it comes again, and what was given back comes again anyway.
                if error.kind() == BrokerErrorKind::DeliveryLost {
                    tracing::debug!(%endpoint, %error, "the broker has taken a delivery back meanwhile");
                } else {
                    tracing::warn!(%endpoint, %error, "the broker could not be told; it delivers again");
                }
            }
            Err(_) => {
                self.counters.add(|counts| counts.broker_errors += 1);
                tracing::warn!(%endpoint, patience = ?SETTLE_PATIENCE, "the broker did not answer a settlement");
            }
        }
        left
    }

    /// A call to the store failed that began then. The cause is for operators and goes nowhere else.
    pub(super) fn store_failed(&self, begun: Instant, error: &StoreError) -> StoreFailed {
        self.counters.add(|counts| counts.store_errors += 1);
        let first = self.pause.until().is_none();
        let wait = self.pause.failed(begun, self.engine.random.unit());
        let endpoint = &self.engine.endpoint;
        if first {
            tracing::warn!(%endpoint, %error, ?wait, "the store failed; deliveries go back to the broker until it is back");
        } else {
            tracing::debug!(%endpoint, %error, ?wait, "the store failed for another delivery");
        }
        StoreFailed(wait)
    }
}

/// What a delivery has come to, for those who follow: the kind, the reason, and the text for operators.
pub(super) type Became = (EventKind, Option<Reason>, Option<ErrorText>);

impl Delivering {
    fn received(&self) {
        if let Some(event) = &self.event {
            self.core.engine.followers.received(|| event.clone());
        }
    }

    /// Tells those who follow, before the broker is told.
    pub(super) async fn tell(&self, (kind, reason, error): Became) {
        let followers = &self.core.engine.followers;
        let Some(event) = self.event.as_ref().filter(|_| !followers.is_empty()) else { return };
        followers.ended(event.became(kind, reason, error.as_ref())).await;
    }

    async fn message(&mut self, message: NewMessage) -> Settling {
        let core = std::sync::Arc::clone(&self.core);
        if core.stores_all {
            return self.store(message, None, |counts| counts.deferred += 1).await;
        }
        let Some(route) = core.engine.routes.get(&message.contract) else {
            return self.unsupported(message).await;
        };
        if self.has_to_be_stored(&message) {
            return self.store(message, None, |counts| counts.deferred += 1).await;
        }
        match self.look_up(&message).await? {
            Arrival::Handle => self.handle(message, route).await,
            Arrival::Park { behind } => {
                self.event.iter_mut().for_each(|event| event.blocked_by = Some(behind));
                self.store(message, None, |counts| counts.parked += 1).await
            }
            known => Ok(self.known(known).await),
        }
    }

    /// Whether only the store can handle it as it must be handled: in the order of its session across processes, which the
    /// broker does not keep; later; or with a count of its attempts, because it came back so often that it may be what
    /// kills its handlers.
    fn has_to_be_stored(&self, message: &NewMessage) -> bool {
        let sessions = self.core.receiver.capabilities().sessions;
        let is_due = match message.metadata.visibility {
            Visibility::Immediate => true,
            // A broker that keeps a schedule has kept it.
            Visibility::At(_) => self.core.receiver.capabilities().scheduled,
            Visibility::After(_) => false,
        };
        let comes_back = self.arrived.redeliveries.is_some_and(|times| times >= TOO_OFTEN);
        (message.metadata.session.is_some() && !sessions) || !is_due || comes_back
    }

    async fn look_up(&self, message: &NewMessage) -> Result<Arrival, StoreFailed> {
        let question = Question { identity: self.arrived.identity.clone(), session: SessionRef::of(message) };
        if question.identity.is_none() && question.session.is_none() {
            return Ok(Arrival::Handle);
        }
        let begun = Instant::now();
        match self.core.calls.look_up(question).await {
            Ok(lookup) => {
                self.core.pause.worked();
                Ok(Arrival::of(&lookup))
            }
            Err(error) => Err(self.core.store_failed(begun, &error)),
        }
    }

    /// It was handled, is stored, or is being handled: no handler runs.
    pub(super) async fn known(&self, arrival: Arrival) -> BrokerSettlement {
        match arrival {
            Arrival::Duplicate => {
                self.core.counters.add(|counts| counts.duplicates += 1);
                self.tell((EventKind::Skipped, Some(Reason::DuplicateDetected), None)).await;
                BrokerSettlement::Ack
            }
            Arrival::Stored { .. } => {
                self.core.counters.add(|counts| counts.known += 1);
                BrokerSettlement::Ack
            }
            Arrival::GiveBack { .. } | Arrival::Handle | Arrival::Park { .. } => self.rest().await,
        }
    }

    /// Gives the delivery back, after a while even where the broker cannot wait.
    async fn rest(&self) -> BrokerSettlement {
        if self.core.receiver.capabilities().delayed_return {
            return BrokerSettlement::Return { after: REST };
        }
        tokio::select! {
            () = tokio::time::sleep(REST) => {}
            _ = self.cancellation.cancelled() => {}
        }
        BrokerSettlement::Return { after: Duration::ZERO }
    }

    async fn unsupported(&mut self, mut message: NewMessage) -> Settling {
        // It holds up no session: what comes behind it can be handled.
        message.metadata.session = None;
        let error = ErrorText::new(format!(
            "no handler of this endpoint takes {}: register one and requeue the message",
            message.contract
        ));
        let dead = Disposition::DeadLetter { reason: Reason::Unsupported };
        self.store(message, Some((dead, Some(error))), |counts| counts.unsupported += 1).await
    }

    async fn unreadable(&mut self, problem: &FieldError, kept: NewMessage) -> Settling {
        let unreadable = |counts: &mut SubscriberCounts| counts.unreadable += 1;
        if self.core.receiver.capabilities().dead_letter {
            self.core.counters.add(unreadable);
            let error = ErrorText::of(problem);
            self.tell((EventKind::DeadLettered, Some(Reason::Undecodable), Some(error))).await;
            return Ok(BrokerSettlement::DeadLetter { reason: format!("unreadable: {problem}") });
        }
        let dead = Disposition::DeadLetter { reason: Reason::Undecodable };
        self.store(kept, Some((dead, Some(ErrorText::of(problem)))), unreadable).await
    }

    /// Stores the delivery: where its handler decided, or where it waits for one.
    pub(super) async fn store(
        &self,
        message: NewMessage,
        handled: Option<(Disposition, Option<ErrorText>)>,
        count: impl FnOnce(&mut SubscriberCounts),
    ) -> Settling {
        let identity = self.arrived.identity.clone();
        let became = became(handled.as_ref());
        let conclusion = Conclusion::Store(Box::new(Stored { identity, message, handled }));
        let concluded = self.conclude(conclusion).await?;
        Ok(self.concluded(concluded, count, became).await)
    }

    pub(super) async fn conclude(&self, conclusion: Conclusion) -> Result<Concluded, StoreFailed> {
        let begun = Instant::now();
        match self.core.calls.conclude(conclusion).await {
            Ok(concluded) => {
                self.core.pause.worked();
                Ok(concluded)
            }
            Err(error) => Err(self.core.store_failed(begun, &error)),
        }
    }

    /// Counts what a delivery has come to, before the broker is told.
    pub(super) async fn concluded(
        &self,
        concluded: Concluded,
        count: impl FnOnce(&mut SubscriberCounts),
        became: Became,
    ) -> BrokerSettlement {
        match Receipted::from(concluded) {
            // Its session was taken meanwhile, or is: it waits, whatever was decided.
            Receipted::Stored { status: Status::Parked, .. } => {
                self.core.counters.add(|counts| counts.parked += 1);
                self.tell((EventKind::Deferred, None, became.2)).await;
                BrokerSettlement::Ack
            }
            Receipted::Recorded | Receipted::Stored { .. } => {
                self.core.counters.add(count);
                self.tell(became).await;
                BrokerSettlement::Ack
            }
            Receipted::Overtaken(arrival) => self.known(arrival).await,
            Receipted::SessionFull => self.rest().await,
        }
    }
}

/// What those who follow are told about a delivery that is stored.
fn became(handled: Option<&(Disposition, Option<ErrorText>)>) -> Became {
    handled
        .and_then(|(disposition, error)| {
            let (kind, reason) = EventKind::of(disposition)?;
            Some((kind, reason, error.clone()))
        })
        .unwrap_or((EventKind::Deferred, None, None))
}
