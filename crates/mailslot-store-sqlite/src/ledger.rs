//! Freeing ledger records: of keys whose policy is over, and of messages that are deleted.

use crate::error::During;
use crate::queries;
use crate::row::{Row, json};
use mailslot_core::stored::RowReader;
use mailslot_core::{LedgerKey, StoreError};
use sqlx::SqliteConnection;
use std::collections::HashMap;

/// Frees the idempotency keys of messages, as far as they still hold them.
pub(crate) async fn free_keys(
    db: &mut SqliteConnection,
    seqs: &[i64],
    operation: &'static str,
) -> Result<(), StoreError> {
    let keys = ledger_keys(db, seqs, operation).await?;
    let keys: Vec<_> = keys.into_iter().filter_map(|(seq, [_, key])| Some((seq, key?))).collect();
    delete_keys(db, &keys, operation).await
}

/// The ledger keys of messages: of the supplied id, and of the idempotency key.
pub(crate) async fn ledger_keys(
    db: &mut SqliteConnection,
    seqs: &[i64],
    operation: &'static str,
) -> Result<HashMap<i64, [Option<LedgerKey>; 2]>, StoreError> {
    let rows = sqlx::query(queries::MESSAGE_KEYS).bind(json(seqs)).fetch_all(db).await.during(operation)?;
    let keys = rows.iter().map(|row| {
        let row = Row(row);
        let mut row = RowReader::new(&row);
        let seq = row.integer(0).unwrap_or_default();
        let tenant = row.tenant(3);
        let supplied = row.integer(2) == Some(1);
        let id = supplied.then(|| LedgerKey::of_id(tenant.as_ref(), row.id(1, seq)));
        let key = row.idempotency_key(4).map(|key| LedgerKey::of_key(tenant.as_ref(), &key));
        (seq, [id, key])
    });
    Ok(keys.collect())
}

/// Deletes ledger records that the given messages still hold.
pub(crate) async fn delete_keys(
    db: &mut SqliteConnection,
    keys: &[(i64, LedgerKey)],
    operation: &'static str,
) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    let seqs: Vec<_> = keys.iter().map(|(seq, _)| *seq).collect();
    let bytes: Vec<u8> = keys.iter().flat_map(|(_, key)| key.0).collect();
    let delete = sqlx::query(queries::LEDGER_DELETE).bind(json(&seqs)).bind(bytes);
    delete.execute(db).await.during(operation)?;
    Ok(())
}
