//! Finding the messages that match a filter: the statement is chosen by what selects few rows.

use crate::error::During;
use crate::queries;
use crate::row::json;
use mailslot_core::store::{Driver, PageOrder, Selection};
use mailslot_core::stored::micros;
use mailslot_core::{Contract, Reason, StoreError};
use sqlx::SqliteConnection;

fn name(driver: Driver) -> &'static str {
    match driver {
        Driver::Ids => "ids",
        Driver::Dead => "dead",
        Driver::Live => "live",
        Driver::Everything => "",
    }
}

/// The places of what matches.
pub(crate) async fn find(
    selection: &Selection<'_>,
    db: &mut SqliteConnection,
    operation: &'static str,
) -> Result<Vec<i64>, StoreError> {
    let filter = selection.filter;
    let driver = selection.driver();
    let statement = match (driver, selection.order) {
        (Driver::Everything, PageOrder::OldestFirst) => queries::MESSAGE_FIND_OLDEST,
        (Driver::Everything, PageOrder::NewestFirst) => queries::MESSAGE_FIND_NEWEST,
        (_, PageOrder::OldestFirst) => queries::MESSAGE_FIND_SELECTED_OLDEST,
        (_, PageOrder::NewestFirst) => queries::MESSAGE_FIND_SELECTED_NEWEST,
    };
    let ids = filter.ids.as_ref().map(|ids| ids.iter().map(|id| id.as_uuid().simple().to_string()));
    let statuses = selection.statuses.as_ref().map(|statuses| statuses.iter().map(|status| status.as_str()));
    let find = sqlx::query_scalar(statement)
        .bind(ids.map(json))
        .bind(statuses.map(json))
        .bind(filter.endpoint.as_ref().map(AsRef::<str>::as_ref))
        .bind(filter.contract.as_ref().map(Contract::name))
        .bind(filter.contract.as_ref().map(|contract| i64::from(contract.version())))
        .bind(filter.tenant.as_ref().map(AsRef::<str>::as_ref))
        .bind(filter.session.as_ref().map(AsRef::<str>::as_ref))
        .bind(filter.idempotency_key.as_ref().map(AsRef::<str>::as_ref))
        .bind(filter.correlation.as_ref().map(AsRef::<str>::as_ref))
        .bind(filter.causation.as_ref().map(AsRef::<str>::as_ref))
        .bind(filter.reason.map(Reason::as_str))
        .bind(filter.accepted_from.map(micros))
        .bind(filter.accepted_before.map(micros))
        .bind(selection.between.0)
        .bind(selection.between.1)
        .bind(i64::try_from(selection.limit).unwrap_or(i64::MAX))
        .bind(selection.without_cancel_requests)
        .bind(name(driver))
        .bind(filter.generation.map(i64::from));
    find.fetch_all(db).await.during(operation)
}
