//! Freeing ledger records: of keys whose policy is over, and of messages that are deleted.

use crate::error::During;
use crate::queries;
use crate::row::{Row, json};
use mailslot_core::stored::RowReader;
use mailslot_core::{LedgerKey, LedgerKeys, StoreError};
use sqlx::SqliteConnection;
use std::collections::HashMap;

/// Frees the idempotency keys of messages, as far as they still hold them.
pub(crate) async fn free_keys(
    db: &mut SqliteConnection,
    seqs: &[i64],
    operation: &'static str,
) -> Result<(), StoreError> {
    let keys = ledger_keys(db, seqs, operation).await?;
    let keys: Vec<_> = keys.into_iter().filter_map(|(seq, keys)| Some((seq, keys.key?))).collect();
    delete_keys(db, &keys, operation).await
}

/// The ledger keys of messages.
pub(crate) async fn ledger_keys(
    db: &mut SqliteConnection,
    seqs: &[i64],
    operation: &'static str,
) -> Result<HashMap<i64, LedgerKeys>, StoreError> {
    let rows = sqlx::query(queries::MESSAGE_KEYS).bind(json(seqs)).fetch_all(db).await.during(operation)?;
    Ok(rows.iter().map(|row| RowReader::new(&Row(row)).ledger_keys()).collect())
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
    let seqs = json(keys.iter().map(|(seq, _)| seq));
    let bytes: Vec<u8> = keys.iter().flat_map(|(_, key)| key.0).collect();
    let delete = sqlx::query(queries::LEDGER_DELETE).bind(seqs).bind(bytes);
    delete.execute(db).await.during(operation)?;
    Ok(())
}
