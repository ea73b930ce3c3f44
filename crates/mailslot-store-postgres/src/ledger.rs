//! Freeing ledger records: of keys whose policy is over, and of messages that are deleted.

use crate::link::{Param, Session};
use crate::queries;
use mailslot_core::stored::RowReader;
use mailslot_core::{LedgerKey, LedgerKeys, StoreError};
use std::borrow::Cow;

/// Frees the idempotency keys of messages, as far as they still hold them.
pub(crate) async fn free_keys(session: &mut Session<'_>, seqs: &[i64]) -> Result<(), StoreError> {
    let keys = ledger_keys(session, seqs).await?;
    let keys: Vec<_> = keys.into_iter().filter_map(|(seq, keys)| Some((seq, keys.key?))).collect();
    delete_keys(session, &keys).await
}

/// Forgets all that protects messages.
pub(crate) async fn forget(session: &mut Session<'_>, seqs: &[i64]) -> Result<(), StoreError> {
    let keys = ledger_keys(session, seqs).await?;
    let both =
        |(seq, keys): (i64, LedgerKeys)| keys.id.into_iter().chain(keys.key).map(move |key| (seq, key));
    let keys: Vec<_> = keys.into_iter().flat_map(both).collect();
    delete_keys(session, &keys).await
}

async fn ledger_keys(session: &mut Session<'_>, seqs: &[i64]) -> Result<Vec<(i64, LedgerKeys)>, StoreError> {
    let rows = session.rows(queries::MESSAGE_KEYS, vec![Param::ints(seqs.iter().copied())]).await?;
    Ok(rows.iter().map(|row| RowReader::new(row).ledger_keys()).collect())
}

/// Deletes ledger records that the given messages still hold.
async fn delete_keys(session: &mut Session<'_>, keys: &[(i64, LedgerKey)]) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    let seqs = Param::ints(keys.iter().map(|(seq, _)| *seq));
    let blobs = Param::Blobs(keys.iter().map(|(_, key)| Cow::Borrowed(&key.0[..])).collect());
    session.execute(queries::LEDGER_DELETE, vec![seqs, blobs]).await?;
    Ok(())
}
