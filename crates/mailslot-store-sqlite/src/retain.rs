//! Retention: which messages ended long enough ago.

use crate::error::During;
use crate::queries;
use jiff::Timestamp;
use mailslot_core::store::RetentionPolicy;
use mailslot_core::stored::{code_of_kind, micros};
use mailslot_core::{EndpointName, StoreError};
use sqlx::SqliteConnection;

/// At most `limit` messages whose time is over.
pub(crate) async fn find(
    db: &mut SqliteConnection,
    endpoint: Option<&EndpointName>,
    policy: &RetentionPolicy,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<i64>, StoreError> {
    let mut seqs: Vec<i64> = Vec::new();
    for (kind, before) in policy.cutoffs(now) {
        let room = i64::try_from(limit.saturating_sub(seqs.len())).unwrap_or(i64::MAX);
        let find = sqlx::query_scalar(queries::MESSAGE_FIND_EXPIRED)
            .bind(code_of_kind(kind))
            .bind(micros(before))
            .bind(endpoint.map(AsRef::<str>::as_ref))
            .bind(room);
        let found: Vec<i64> = find.fetch_all(&mut *db).await.during("retain")?;
        seqs.extend(found);
    }
    Ok(seqs)
}
