//! What operators look at, and the counters that they look at.

use crate::exchange::branches;
use crate::hints::{Hints, Look};
use crate::link::{Param, Session};
use crate::queries;
use crate::select::find;
use jiff::Timestamp;
use mailslot_core::store::{
    Count, Filter, LeaseRecord, MessageDetail, MessageRecord, Page, PageOrder, PageRequest, Selection,
    SessionRecord,
};
use mailslot_core::stored::{Read, RowReader, details, instant};
use mailslot_core::{EndpointName, MessageId, StoreError};

/// One page. A row with a value that cannot be read is shown with what can be shown of it, so that one damaged row
/// does not hide the others; `get` and `check` name the damage.
pub(crate) async fn query(
    session: &mut Session<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<MessageRecord>, StoreError> {
    let mut seqs = find(session, &Selection::page(filter, page)).await?;
    let next = page.cut(&mut seqs);
    let mut items: Vec<_> = records(session, &seqs).await?.into_iter().map(|read| read.value).collect();
    if page.order == PageOrder::NewestFirst {
        items.reverse();
    }
    Ok(Page { items, next })
}

/// Since when the message of an endpoint is due that has been due longest, and the time.
pub(crate) async fn oldest_due(
    session: &mut Session<'_>,
    endpoint: &EndpointName,
    hints: Option<&Hints>,
    time: Param<'static>,
) -> Result<(Option<Timestamp>, Timestamp), StoreError> {
    let lanes = session.rows(queries::LANE_OF_ENDPOINT, vec![Param::text(endpoint.as_str())]).await?;
    let branches = branches(&lanes.iter().map(|row| row.int(0)).collect::<Vec<_>>());
    let since = hints.map_or_else(|| Look::at_front(branches.len()).since, |hints| hints.known(&branches));
    let params = vec![
        time,
        Param::ints(branches.iter().map(|(lane, _)| *lane)),
        Param::ints(branches.iter().map(|(_, class)| *class)),
        Param::ints(since),
    ];
    let row = session.row(queries::READY_OLDEST_DUE, params).await?;
    Ok((RowReader::new(&row).integer(0).map(instant), instant(row.int(1))))
}

/// Records in acceptance order.
async fn records(session: &mut Session<'_>, seqs: &[i64]) -> Result<Vec<Read<MessageRecord>>, StoreError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let rows = session.rows(queries::MESSAGE_READ, vec![Param::ints(seqs.iter().copied())]).await?;
    Ok(rows.iter().map(|row| RowReader::new(row).record()).collect())
}

/// Every message of an id with its history.
pub(crate) async fn get(session: &mut Session<'_>, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
    let found = session.rows(queries::MESSAGE_FIND_ID, vec![Param::Uuid(id.as_uuid())]).await?;
    let seqs: Vec<_> = found.iter().map(|row| row.int(0)).collect();
    let records = records(session, &seqs).await?;
    let outcomes = session.rows(queries::OUTCOME_READ, vec![Param::ints(seqs)]).await?;
    details(records, outcomes.iter().map(|row| RowReader::new(row).outcome()))
}

/// The counters, in the order of their names.
pub(crate) async fn counts(session: &mut Session<'_>) -> Result<Vec<Count>, StoreError> {
    let rows = session.rows(queries::TALLY_LIST, vec![]).await?;
    let mut counts: Vec<_> = rows.iter().map(|row| RowReader::new(row).tally()).collect();
    counts.sort_unstable();
    Ok(counts)
}

/// How many rows [`fold`] adds up at the most: see `tally/fold.sql`.
pub(crate) const FOLDED_MAX: i64 = 10_000;

/// Adds up what transactions wrote to the counters. Returns how many rows went.
pub(crate) async fn fold(session: &mut Session<'_>) -> Result<i64, StoreError> {
    Ok(session.row(queries::TALLY_FOLD, vec![]).await?.int(0))
}

/// Sessions that have a head, by key.
pub(crate) async fn sessions(
    session: &mut Session<'_>,
    blocked_only: bool,
    limit: usize,
) -> Result<Vec<SessionRecord>, StoreError> {
    let params = vec![Param::Bool(blocked_only), number(limit)];
    let rows = session.rows(queries::SESSION_LIST, params).await?;
    Ok(rows.iter().filter_map(|row| RowReader::new(row).session()).collect())
}

/// Leases, oldest end first.
pub(crate) async fn leases(session: &mut Session<'_>, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
    let rows = session.rows(queries::LEASE_LIST, vec![number(limit)]).await?;
    Ok(rows.iter().map(|row| RowReader::new(row).lease()).collect())
}

fn number(limit: usize) -> Param<'static> {
    Param::Int(Some(i64::try_from(limit).unwrap_or(i64::MAX)))
}
