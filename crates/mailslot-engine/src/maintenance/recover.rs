//! Recovery: takes back messages whose leases ran out.

use crate::inbox::Engine;
use mailslot_core::StoreError;
use std::sync::Arc;

/// Leases per transaction: with full batches some ten thousand messages.
const LEASES: usize = 50;

pub(super) async fn run_once(engine: Arc<Engine>) -> Result<(), StoreError> {
    loop {
        let recovered = engine.store.recover(LEASES).await?;
        if recovered.leases > 0 {
            let messages = recovered.returned + recovered.cancelled;
            tracing::info!(leases = recovered.leases, messages, "took back messages whose leases ran out");
            engine.stats.add(|stats| stats.recovered += messages);
        }
        if recovered.leases < LEASES as u64 {
            return Ok(());
        }
    }
}
