//! Redrive: advances paced redrives.

use crate::inbox::Engine;
use mailslot_core::StoreError;
use std::sync::Arc;

pub(super) async fn run_once(engine: Arc<Engine>) -> Result<(), StoreError> {
    for redrive in engine.store.step_redrives().await? {
        tracing::debug!(id = %redrive.id, requeued = redrive.requeued, total = redrive.total, "advanced a redrive");
    }
    Ok(())
}
