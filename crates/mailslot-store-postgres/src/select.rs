//! Finding the messages that match a filter: the statement is chosen by what selects few rows, and looks at a bounded
//! stretch of them at a time.

use crate::link::{Param, Row, Session};
use crate::queries::{self, Query};
use mailslot_core::store::{Driver, PageOrder, Selection};
use mailslot_core::stored::{Columns as _, micros};
use mailslot_core::{Contract, Reason, Status, StoreError};
use std::borrow::Cow;

/// The places of what matches.
pub(crate) async fn find(
    session: &mut Session<'_>,
    selection: &Selection<'_>,
) -> Result<Vec<i64>, StoreError> {
    let (statement, driver) = statement(selection);
    let mut selection = selection.clone();
    let (wanted, mut seqs) = (selection.limit, Vec::new());
    while seqs.len() < wanted {
        selection.limit = wanted - seqs.len();
        let rows = session.rows(statement, params(&selection, driver)).await?;
        seqs.extend(rows.iter().filter_map(|row| row.integer(1)));
        let Some(ends) = rows.first().and_then(|row: &Row| row.integer(0)) else { break };
        match selection.order {
            PageOrder::OldestFirst => selection.between.0 = ends,
            PageOrder::NewestFirst => selection.between.1 = ends,
        }
    }
    Ok(seqs)
}

/// The statement, and what it begins with if it can begin with several things.
fn statement(selection: &Selection<'_>) -> (Query, Option<&'static str>) {
    let driver = match selection.driver() {
        Driver::Ids => "ids",
        Driver::Dead => "dead",
        Driver::Live => "live",
        Driver::Everything => {
            let walk = match selection.order {
                PageOrder::OldestFirst => queries::MESSAGE_FIND_OLDEST,
                PageOrder::NewestFirst => queries::MESSAGE_FIND_NEWEST,
            };
            return (walk, None);
        }
    };
    let walk = match selection.order {
        PageOrder::OldestFirst => queries::MESSAGE_FIND_SELECTED_OLDEST,
        PageOrder::NewestFirst => queries::MESSAGE_FIND_SELECTED_NEWEST,
    };
    (walk, Some(driver))
}

fn params<'s>(selection: &'s Selection<'_>, driver: Option<&'s str>) -> Vec<Param<'s>> {
    let filter = selection.filter;
    let name = |name: Option<&'s str>| Param::Text(name.map(Cow::Borrowed));
    let statuses = selection.statuses.as_ref().map(|statuses| statuses.iter().copied().map(Status::as_str));
    let mut params = vec![
        Param::Uuids(filter.ids.as_ref().map(|ids| ids.iter().map(|id| id.as_uuid()).collect())),
        Param::Texts(statuses.map(|statuses| statuses.map(|status| Some(Cow::Borrowed(status))).collect())),
        name(filter.endpoint.as_ref().map(AsRef::as_ref)),
        name(filter.contract.as_ref().map(Contract::name)),
        Param::Int(filter.contract.as_ref().map(|contract| i64::from(contract.version()))),
        name(filter.tenant.as_ref().map(AsRef::as_ref)),
        name(filter.session.as_ref().map(AsRef::as_ref)),
        name(filter.idempotency_key.as_ref().map(AsRef::as_ref)),
        name(filter.correlation.as_ref().map(AsRef::as_ref)),
        name(filter.causation.as_ref().map(AsRef::as_ref)),
        name(filter.reason.map(Reason::as_str)),
        Param::Int(filter.accepted_from.map(micros)),
        Param::Int(filter.accepted_before.map(micros)),
        Param::Int(Some(selection.between.0)),
        Param::Int(Some(selection.between.1)),
        Param::Int(Some(i64::try_from(selection.limit).unwrap_or(i64::MAX))),
        Param::Bool(selection.without_cancel_requests),
    ];
    params.extend(driver.map(Param::text));
    params.push(Param::Int(filter.generation.map(i64::from)));
    params
}
