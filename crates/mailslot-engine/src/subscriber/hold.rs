//! Keeping a delivery while its handler runs: the claim in the store, and the broker's patience.

use super::deliver::Delivering;
use super::settling::StoreFailed;
use mailslot_core::CancelCause;
use mailslot_core::broker::BrokerErrorKind;
use mailslot_core::store::{Claim, Claimed, Known};
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// What is held of a delivery.
pub(super) struct Hold {
    claim: Option<Claim>,
}

/// Claims a delivery, if that was asked for and it can be recognised. `Err`: it has come to this meanwhile.
pub(super) async fn claim(delivering: &Delivering) -> Result<Result<Hold, Known>, StoreFailed> {
    let Some(claim) = wanted(delivering) else { return Ok(Ok(Hold { claim: None })) };
    let begun = Instant::now();
    match delivering.core.ledger.claim(claim.clone()).await {
        Ok(Claimed::Granted { .. }) => Ok(Ok(Hold { claim: Some(claim) })),
        Ok(Claimed::Refused(known)) => Ok(Err(known)),
        Err(error) => Err(delivering.core.store_failed(begun, &error)),
    }
}

fn wanted(delivering: &Delivering) -> Option<Claim> {
    let duration = delivering.core.deduplication.as_ref()?.claim?;
    let identity = delivering.arrived.identity.clone()?;
    Some(Claim { identity, owner: Uuid::new_v4(), duration })
}

impl Hold {
    /// Does `work`, and keeps the delivery meanwhile.
    pub(super) async fn while_held<T>(&self, delivering: &Delivering, work: impl Future<Output = T>) -> T {
        let keep = async { tokio::join!(self.renew(delivering), extend(delivering)) };
        tokio::select! {
            biased;
            done = work => done,
            _ = keep => unreachable!("what is kept is kept until the work is done"),
        }
    }

    /// Prolongs the claim. One that is lost stops the handler, but not its success: that counts whoever has claimed it.
    async fn renew(&self, delivering: &Delivering) {
        let Some(claim) = &self.claim else { return std::future::pending().await };
        let mut ends = Instant::now() + claim.duration;
        loop {
            sleep(claim.duration / 3).await;
            let begun = Instant::now();
            match delivering.core.ledger.claim(claim.clone()).await {
                Ok(Claimed::Granted { .. }) => ends = begun + claim.duration,
                Ok(Claimed::Refused(_)) => break,
                Err(error) => {
                    delivering.core.store_failed(begun, &error);
                    if Instant::now() >= ends {
                        break;
                    }
                }
            }
        }
        delivering.cancellation.cancel(CancelCause::LeaseLost);
        std::future::pending::<()>().await;
    }

    /// Lets others have it.
    pub(super) async fn give_up(&self, delivering: &Delivering) {
        let Some(claim) = &self.claim else { return };
        if let Err(error) = delivering.core.ledger.give_up(&claim.identity, claim.owner).await {
            let endpoint = &delivering.core.engine.endpoint;
            tracing::debug!(%endpoint, %error, "a claim could not be given up; it ends by itself");
        }
    }
}

/// Tells the broker from time to time that the delivery is still being handled.
async fn extend(delivering: &Delivering) {
    let core = &delivering.core;
    if !core.receiver.capabilities().extend {
        return std::future::pending().await;
    }
    let every: Duration = core.settings.extend_every;
    loop {
        sleep(every).await;
        let extended = core.receiver.extend(vec![delivering.tag]).await.pop();
        let Some(Err(error)) = extended else { continue };
        core.counters.add(|counts| counts.broker_errors += 1);
        if error.kind() == BrokerErrorKind::DeliveryLost {
            delivering.cancellation.cancel(CancelCause::LeaseLost);
            return std::future::pending().await;
        }
        tracing::debug!(endpoint = %core.engine.endpoint, %error, "a delivery could not be extended yet");
    }
}
