//! A transaction that does nothing but hold an old snapshot, as a forgotten session or a long report does: until it ends
//! the server keeps every row version that was deleted since.

use super::connect;
use tokio_postgres::Client;

/// Held until it is dropped.
pub(crate) struct Snapshot {
    _client: Client,
}

impl Snapshot {
    pub(super) async fn take(url: &str) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        // The first statement takes the snapshot; BEGIN does not.
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await?;
        Ok(Self { _client: client })
    }
}
