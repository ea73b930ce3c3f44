//! What operators look at.

use crate::error::During;
use crate::queries;
use crate::row::{Row, json};
use crate::select::find;
use jiff::Timestamp;
use mailslot_core::store::{
    Count, Filter, LeaseRecord, MessageDetail, MessageRecord, Page, PageOrder, PageRequest, Selection,
    SessionRecord,
};
use mailslot_core::stored::{Read, RowReader, details, instant};
use mailslot_core::{EndpointName, MessageId, StoreError};
use sqlx::SqliteConnection;

/// Since when the message of an endpoint is due that has been due longest.
pub(crate) async fn oldest_due(
    db: &mut SqliteConnection,
    endpoint: &EndpointName,
) -> Result<Option<Timestamp>, StoreError> {
    let find = sqlx::query_scalar(queries::READY_OLDEST_DUE).bind(endpoint.as_str());
    let due_at: Option<i64> = find.fetch_one(db).await.during("oldest_due")?;
    Ok(due_at.map(instant))
}

/// One page. A row with a value that cannot be read is shown with what can be shown of it, so that one damaged row
/// does not hide the others; `get` and `check` name the damage.
pub(crate) async fn query(
    db: &mut SqliteConnection,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<MessageRecord>, StoreError> {
    const OPERATION: &str = "query";
    let mut seqs = find(&Selection::page(filter, page), db, OPERATION).await?;
    let next = page.cut(&mut seqs);
    let mut items: Vec<_> = records(db, &seqs, OPERATION).await?.into_iter().map(|read| read.value).collect();
    if page.order == PageOrder::NewestFirst {
        items.reverse();
    }
    Ok(Page { items, next })
}

/// Records in acceptance order.
async fn records(
    db: &mut SqliteConnection,
    seqs: &[i64],
    operation: &'static str,
) -> Result<Vec<Read<MessageRecord>>, StoreError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(queries::MESSAGE_READ).bind(json(seqs)).fetch_all(db).await.during(operation)?;
    Ok(rows.iter().map(|row| RowReader::new(&Row(row)).record()).collect())
}

/// Every message of an id with its history.
pub(crate) async fn get(db: &mut SqliteConnection, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
    const OPERATION: &str = "get";
    let find = sqlx::query_scalar(queries::MESSAGE_FIND_ID).bind(id.as_uuid().as_bytes().to_vec());
    let seqs: Vec<i64> = find.fetch_all(&mut *db).await.during(OPERATION)?;
    let records = records(db, &seqs, OPERATION).await?;
    let read = sqlx::query(queries::OUTCOME_READ).bind(json(&seqs));
    let outcomes = read.fetch_all(db).await.during(OPERATION)?;
    details(records, outcomes.iter().map(|row| RowReader::new(&Row(row)).outcome()))
}

/// The counters, in the order of their names.
pub(crate) async fn counts(db: &mut SqliteConnection) -> Result<Vec<Count>, StoreError> {
    let rows = sqlx::query(queries::TALLY_LIST).fetch_all(db).await.during("counts")?;
    let mut counts: Vec<_> = rows.iter().map(|row| RowReader::new(&Row(row)).tally()).collect();
    counts.sort_unstable();
    Ok(counts)
}

/// Sessions that have a head, by key.
pub(crate) async fn sessions(
    db: &mut SqliteConnection,
    blocked_only: bool,
    limit: usize,
) -> Result<Vec<SessionRecord>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let list = sqlx::query(queries::SESSION_LIST).bind(blocked_only).bind(limit);
    let rows = list.fetch_all(db).await.during("sessions")?;
    Ok(rows.iter().filter_map(|row| RowReader::new(&Row(row)).session()).collect())
}

/// Leases, oldest end first.
pub(crate) async fn leases(db: &mut SqliteConnection, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sqlx::query(queries::LEASE_LIST).bind(limit).fetch_all(db).await.during("leases")?;
    Ok(rows.iter().map(|row| RowReader::new(&Row(row)).lease()).collect())
}
