//! The handler of a delivery, and what its verdict comes to.

use super::SubscriberCounts;
use super::deliver::{Delivering, Settling};
use super::hold::{Hold, claim};
use super::item::envelope;
use super::settling::StoreFailed;
use crate::dispatch;
use crate::follow::EventKind;
use crate::route::Route;
use jiff::Timestamp;
use mailslot_core::arrival::Arrival;
use mailslot_core::broker::BrokerSettlement;
use mailslot_core::store::{Concluded, Conclusion, Stored};
use mailslot_core::{Context, DeliveryIdentity, Disposition, NewMessage};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

const AT_ONCE: BrokerSettlement = BrokerSettlement::Return { after: Duration::ZERO };

impl Delivering {
    /// Runs the handler, alone if that was asked for.
    pub(super) async fn handle(&mut self, message: NewMessage, route: &Route) -> Settling {
        match claim(self).await? {
            Ok(hold) => {
                let settling = self.handle_alone(message, route, &hold).await;
                if !matches!(settling, Ok(BrokerSettlement::Ack | BrokerSettlement::DeadLetter { .. })) {
                    hold.give_up(self).await;
                }
                settling
            }
            Err(known) => Ok(self.known(Arrival::of_known(known)).await),
        }
    }

    async fn handle_alone(&mut self, message: NewMessage, route: &Route, hold: &Hold) -> Settling {
        let core = std::sync::Arc::clone(&self.core);
        let engine = &core.engine;
        self.event.iter_mut().for_each(|event| event.attempt = 1);
        let context = Context::of_arrival(
            envelope(&message, Timestamp::now()),
            self.arrived.clone(),
            self.cancellation.clone(),
            engine.extensions.clone(),
        );
        let mut abort = self.abort.clone();
        let verdict = tokio::select! {
            biased;
            verdict = hold.while_held(self, dispatch::run(engine, route, &context)) => Some(verdict),
            () = over(&mut abort) => None,
        };
        let Some(verdict) = verdict else {
            dispatch::abandon(engine, &context).await;
            dispatch::roll_back(context.take_enlisted()).await;
            return Ok(AT_ONCE);
        };
        let (disposition, error) = dispatch::decide_for(engine, route, &context, verdict);
        if disposition == Disposition::Complete {
            return self.succeeded(message, &context).await;
        }
        dispatch::roll_back(context.take_enlisted()).await;
        if disposition == Disposition::Release {
            return Ok(AT_ONCE);
        }
        let count = counter(&disposition);
        self.store(message, Some((disposition, error)), count).await
    }

    /// Records a success: in the handler's own transaction, if it took one.
    async fn succeeded(&self, message: NewMessage, context: &Context) -> Settling {
        let concluded = match (context.take_enlisted(), self.arrived.identity.clone()) {
            (Some(transaction), identity) => self.commit(transaction, identity.as_ref()).await?,
            (None, None) => Concluded::Recorded,
            (None, Some(identity)) if self.keeps_history() => {
                let handled = Some((Disposition::Complete, None));
                let stored = Stored { identity: Some(identity), message, handled };
                self.conclude(Conclusion::Store(Box::new(stored))).await?
            }
            (None, Some(identity)) => self.conclude(Conclusion::Handled(identity)).await?,
        };
        let became = (EventKind::Completed, None, None);
        Ok(self.concluded(concluded, |counts| counts.handled += 1, became).await)
    }

    fn keeps_history(&self) -> bool {
        self.core.deduplication.as_ref().is_some_and(|deduplication| deduplication.keep_history)
    }

    async fn commit(
        &self,
        transaction: std::sync::Arc<dyn mailslot_core::EnlistedTransaction>,
        identity: Option<&DeliveryIdentity>,
    ) -> Result<Concluded, StoreFailed> {
        let begun = Instant::now();
        match transaction.record_and_commit(identity).await {
            Ok(concluded) => Ok(concluded),
            Err(error) => {
                dispatch::roll_back(Some(transaction)).await;
                Err(self.core.store_failed(begun, &error))
            }
        }
    }
}

/// Waits for the end of the grace time. Whoever dropped the whole run has not waited for it: then this task is about to go,
/// too, and does as little as in a process that died.
async fn over(abort: &mut watch::Receiver<bool>) {
    if abort.wait_for(|abort| *abort).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Which counter a verdict belongs to.
fn counter(disposition: &Disposition) -> fn(&mut SubscriberCounts) {
    match disposition {
        Disposition::Complete | Disposition::Release => |_| {},
        Disposition::Retry { .. } => |counts| counts.retried += 1,
        Disposition::DeadLetter { .. } => |counts| counts.dead_lettered += 1,
        Disposition::Skip { .. } => |counts| counts.skipped += 1,
        Disposition::Suspend(_) => |counts| counts.suspended += 1,
    }
}
