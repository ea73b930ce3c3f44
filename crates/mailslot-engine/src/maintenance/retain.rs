//! Retention: deletes messages that ended long enough ago.

use crate::inbox::Engine;
use mailslot_core::StoreError;
use mailslot_core::limits::CHANGE_BATCH_MAX;
use std::sync::Arc;

pub(super) async fn run_once(engine: Arc<Engine>) -> Result<(), StoreError> {
    let policy = engine.retention.borrow().clone();
    loop {
        let deleted = engine.store.retain(None, &policy, CHANGE_BATCH_MAX).await?;
        engine.stats.add(|stats| stats.deleted += deleted);
        if deleted < CHANGE_BATCH_MAX as u64 {
            return Ok(());
        }
        // Between two batches others get their turn at the store.
        tokio::task::yield_now().await;
    }
}
