//! What operators look at.

use crate::error::During;
use crate::queries;
use crate::row::{Row, json};
use crate::select::Selection;
use jiff::Timestamp;
use mailslot_core::store::{
    Count, Cursor, Filter, LeaseRecord, MessageDetail, MessageRecord, Page, PageOrder, PageRequest,
    SessionRecord,
};
use mailslot_core::stored::{Read, RowReader};
use mailslot_core::{MessageId, OutcomeRecord, Seq, SessionKey, StoreError, StoreErrorKind, TenantName};
use sqlx::SqliteConnection;
use std::collections::HashMap;
use uuid::Uuid;

/// One page. A row with a value that cannot be read is shown with what can be shown of it, so that one damaged row
/// does not hide the others; `get` and `check` name the damage.
pub(crate) async fn query(
    db: &mut SqliteConnection,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<MessageRecord>, StoreError> {
    const OPERATION: &str = "query";
    let mut selection = Selection::oldest(filter, page.size + 1);
    selection.order = page.order;
    match (page.order, page.after) {
        (_, None) => {}
        (PageOrder::OldestFirst, Some(Cursor(Seq(after)))) => selection.between.0 = after,
        (PageOrder::NewestFirst, Some(Cursor(Seq(after)))) => selection.between.1 = after,
    }
    let mut seqs = selection.find(db, OPERATION).await?;
    let more = seqs.len() > page.size;
    seqs.truncate(page.size);
    let next = seqs.last().filter(|_| more).map(|seq| Cursor(Seq(*seq)));
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
    let mut histories = histories(db, &seqs).await?;
    let detail = |read: Read<MessageRecord>| {
        if let Some(field) = read.defect {
            return Err(corrupt(read.value.envelope.seq, field));
        }
        let history = histories.remove(&read.value.envelope.seq.0).unwrap_or_default();
        Ok(MessageDetail { record: read.value, history })
    };
    records.into_iter().map(detail).collect()
}

fn corrupt(seq: Seq, field: &str) -> StoreError {
    let detail = format!("`{field}` of the message at place {seq} cannot be read; purge it, or mend the row");
    StoreError::new(StoreErrorKind::Corrupt, "get", detail)
}

async fn histories(
    db: &mut SqliteConnection,
    seqs: &[i64],
) -> Result<HashMap<i64, Vec<OutcomeRecord>>, StoreError> {
    let rows = sqlx::query(queries::OUTCOME_READ).bind(json(seqs)).fetch_all(db).await.during("get")?;
    let mut histories: HashMap<i64, Vec<OutcomeRecord>> = HashMap::new();
    for row in &rows {
        let read = RowReader::new(&Row(row)).outcome();
        let (seq, record) = read.value;
        match (record, read.defect) {
            (Some(record), None) => histories.entry(seq).or_default().push(record),
            (_, defect) => return Err(corrupt(Seq(seq), defect.unwrap_or("outcome"))),
        }
    }
    Ok(histories)
}

/// The counters, in the order of their names.
pub(crate) async fn counts(db: &mut SqliteConnection) -> Result<Vec<Count>, StoreError> {
    let rows = sqlx::query(queries::TALLY_LIST).fetch_all(db).await.during("counts")?;
    let count = |row| {
        let row = Row(row);
        let mut row = RowReader::new(&row);
        let (endpoint, contract) = (row.endpoint(0), row.contract(1));
        Count { endpoint, contract, status: row.status(3), messages: row.count(4) }
    };
    let mut counts: Vec<_> = rows.iter().map(count).collect();
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
    let record = |row| {
        let row = Row(row);
        let mut row = RowReader::new(&row);
        Some(SessionRecord {
            endpoint: row.endpoint(0),
            tenant: row.text(1, "tenant").and_then(|tenant| TenantName::new(tenant).ok()),
            key: SessionKey::new(row.text(2, "session")?).ok()?,
            head: row.other_id(3)?,
            head_status: row.status(4),
            parked: row.count(5),
        })
    };
    Ok(rows.iter().filter_map(record).collect())
}

/// Leases, oldest end first.
pub(crate) async fn leases(db: &mut SqliteConnection, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sqlx::query(queries::LEASE_LIST).bind(limit).fetch_all(db).await.during("leases")?;
    let record = |row| {
        let row = Row(row);
        let mut row = RowReader::new(&row);
        LeaseRecord {
            owner: row.bytes(0).and_then(|owner| Uuid::from_slice(owner).ok()).unwrap_or_default(),
            label: row.text(1, "label").unwrap_or_default(),
            generation: row.integer(2).unwrap_or_default(),
            until: row.timestamp(3, "until").unwrap_or(Timestamp::UNIX_EPOCH),
            messages: row.count(4),
        }
    };
    Ok(rows.iter().map(record).collect())
}
