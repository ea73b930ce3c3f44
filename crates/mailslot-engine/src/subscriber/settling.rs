//! Telling the broker, and what it means that the store failed.

use super::Core;
use mailslot_core::StoreError;
use mailslot_core::broker::{BrokerErrorKind, BrokerSettlement, DeliveryTag};
use std::time::Duration;
use tokio::time::Instant;

/// How long a settlement may take. No stop shortens it; one that takes longer is left to the broker, which delivers again.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);

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
pub(super) struct StoreFailed(pub(super) Duration);

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
