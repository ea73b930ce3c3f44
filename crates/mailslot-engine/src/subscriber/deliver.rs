//! One delivery, from what is known of it to what the broker is told.
//!
//! The order is: look up, session, handler, record, settle. Everything that a crash could lose is in the store before the
//! broker forgets its copy.

use super::item::Content;
use super::settling::{Left, StoreFailed};
use super::{Core, SubscriberCounts, heartbeat};
use crate::follow::{EventKind, OutcomeEvent};
use mailslot_core::arrival::{Arrival, Receipted};
use mailslot_core::broker::{BrokerSettlement, DeliveryTag};
use mailslot_core::store::{Concluded, Conclusion, Question, SessionRef, Stored};
use mailslot_core::{
    Arrived, Cancellation, Disposition, ErrorText, FieldError, NewMessage, Reason, Status, Visibility,
};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

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
    /// What those who follow are told about it, if there are any.
    pub(super) event: Option<OutcomeEvent>,
}

/// What the broker is to be told.
pub(super) type Settling = Result<BrokerSettlement, StoreFailed>;

/// Does with a delivery what is to be done, and settles it.
pub(super) async fn deliver(mut delivering: Delivering, content: Content) -> Left {
    let settling = match content {
        Content::Message(message) => {
            delivering.received(|arrived| OutcomeEvent::of_arrival(&message, arrived));
            delivering.message(*message).await
        }
        Content::Heartbeat { reply_to, correlation_id } => {
            heartbeat::answer(&delivering.core, reply_to, correlation_id).await;
            Ok(BrokerSettlement::Ack)
        }
        Content::Unreadable { problem, kept } => {
            let unknown = |arrived: &Arrived| {
                let event = OutcomeEvent::of_arrival(&kept, arrived);
                OutcomeEvent { contract: None, ..event }
            };
            delivering.received(unknown);
            delivering.unreadable(&problem, *kept).await
        }
    };
    // A store that failed is never read as "handled before".
    let settlement = settling.unwrap_or_else(|StoreFailed(after)| BrokerSettlement::Return { after });
    delivering.core.settle(delivering.tag, settlement).await
}

/// What a delivery has come to, for those who follow: the kind, the reason, and the text for operators.
pub(super) type Became = (EventKind, Option<Reason>, Option<ErrorText>);

impl Delivering {
    /// Tells those who follow that it came, if there are any.
    fn received(&mut self, event: impl FnOnce(&Arrived) -> OutcomeEvent) {
        let followers = &self.core.engine.followers;
        self.event = (!followers.is_empty()).then(|| event(&self.arrived));
        if let Some(event) = &self.event {
            followers.received(|| event.clone());
        }
    }

    /// Tells those who follow, before the broker is told.
    pub(super) async fn tell(&self, (kind, reason, error): Became) {
        let Some(event) = &self.event else { return };
        self.core.engine.followers.ended(event.became(kind, reason, error.as_ref())).await;
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
        let comes_back = self.arrived.redeliveries.is_some_and(|times| times >= TOO_OFTEN);
        let is_later = message.metadata.visibility != Visibility::Immediate;
        (message.metadata.session.is_some() && !sessions) || is_later || comes_back
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
