//! Noticing the commits of others: other processes, and transactions of the application on its own connections.
//!
//! SQLite has no notification between processes, but `PRAGMA data_version` changes on a connection when any other
//! connection committed, and costs a look into shared memory. It is asked on the writing connection, so that our own
//! commits, which wake directly, do not count.

use crate::error::During;
use crate::store::Shared;
use mailslot_core::StoreError;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the version is asked while others commit: the delay that their accepts see.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// How often it is asked after a long silence.
const INTERVAL_MAX: Duration = Duration::from_millis(250);

/// How many looks in vain until the interval grows.
const QUIET_LOOKS: u32 = 50;

/// Starts the watch. It ends with the last handle of the store.
pub(crate) fn watch(shared: &Arc<Shared>) {
    tokio::spawn(run(Arc::downgrade(shared)));
}

async fn run(shared: Weak<Shared>) {
    let mut seen = None;
    let mut quiet = 0;
    let mut interval = INTERVAL_MIN;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        // A failure is no news; whoever uses the store meets it too and reports it.
        if let Ok(version) = data_version(&shared).await {
            // The first answer counts as news: what was committed before it would be missed otherwise.
            let changed = seen.replace(version) != Some(version);
            quiet = if changed { 0 } else { quiet + 1 };
            if changed {
                shared.signal.notify();
            }
        }
        interval = if quiet < QUIET_LOOKS { INTERVAL_MIN } else { (interval * 2).min(INTERVAL_MAX) };
        drop(shared);
        tokio::time::sleep(interval).await;
    }
}

async fn data_version(shared: &Shared) -> Result<i64, StoreError> {
    let mut turn = shared.writer.turn("watch").await?;
    let db = turn.connection("watch").await?;
    sqlx::query_scalar(crate::queries::SCHEMA_DATA_VERSION).fetch_one(db).await.during("watch")
}
