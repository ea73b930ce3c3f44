//! Handoffs: settles those whose settlement came before their message was suspended.

use crate::inbox::Engine;
use mailslot_core::StoreError;
use mailslot_core::limits::CHANGE_BATCH_MAX;
use std::sync::Arc;

pub(super) async fn run_once(engine: Arc<Engine>) -> Result<(), StoreError> {
    let settled = engine.store.apply_kept_handoffs(CHANGE_BATCH_MAX).await?;
    if settled > 0 {
        tracing::info!(settled, "settled handoffs whose settlement had come early");
    }
    Ok(())
}
