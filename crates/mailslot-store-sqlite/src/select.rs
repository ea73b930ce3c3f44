//! Finding the messages that match a filter: the statement is chosen by what selects few rows.

use crate::error::During;
use crate::queries;
use crate::row::json;
use mailslot_core::store::{Filter, PageOrder};
use mailslot_core::stored::micros;
use mailslot_core::{Contract, Reason, Status, StoreError};
use sqlx::SqliteConnection;

/// What to find besides the filter.
#[derive(Debug, Clone)]
pub(crate) struct Selection<'f> {
    pub(crate) filter: &'f Filter,
    /// In one of these states; `None`: as the filter says.
    pub(crate) statuses: Option<Vec<Status>>,
    /// After this place and before that one, both outside.
    pub(crate) between: (i64, i64),
    pub(crate) order: PageOrder,
    pub(crate) limit: i64,
    /// Leaves out messages that someone asked to cancel.
    pub(crate) without_cancel_requests: bool,
}

/// What drives the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    Ids,
    Dead,
    Live,
    Everything,
}

impl Driver {
    fn of(ids: bool, statuses: Option<&[Status]>) -> Self {
        match statuses {
            _ if ids => Self::Ids,
            Some([Status::DeadLettered]) => Self::Dead,
            Some(statuses) if statuses.iter().all(|status| !status.is_terminal()) => Self::Live,
            _ => Self::Everything,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Dead => "dead",
            Self::Live => "live",
            Self::Everything => "",
        }
    }
}

impl<'f> Selection<'f> {
    /// The first `limit` that match, in acceptance order.
    pub(crate) fn oldest(filter: &'f Filter, limit: usize) -> Self {
        Self {
            filter,
            statuses: filter.statuses.clone(),
            between: (i64::MIN, i64::MAX),
            order: PageOrder::OldestFirst,
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            without_cancel_requests: false,
        }
    }

    /// The places of what matches.
    pub(crate) async fn find(
        &self,
        db: &mut SqliteConnection,
        operation: &'static str,
    ) -> Result<Vec<i64>, StoreError> {
        let filter = self.filter;
        let driver = Driver::of(filter.ids.is_some(), self.statuses.as_deref());
        let statement = match (driver, self.order) {
            (Driver::Everything, PageOrder::OldestFirst) => queries::MESSAGE_FIND_OLDEST,
            (Driver::Everything, PageOrder::NewestFirst) => queries::MESSAGE_FIND_NEWEST,
            (_, PageOrder::OldestFirst) => queries::MESSAGE_FIND_SELECTED_OLDEST,
            (_, PageOrder::NewestFirst) => queries::MESSAGE_FIND_SELECTED_NEWEST,
        };
        let ids = filter.ids.as_ref().map(|ids| ids.iter().map(|id| id.as_uuid().simple().to_string()));
        let statuses = self.statuses.as_ref().map(|statuses| statuses.iter().map(|status| status.as_str()));
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
            .bind(self.between.0)
            .bind(self.between.1)
            .bind(self.limit)
            .bind(self.without_cancel_requests)
            .bind(driver.as_str());
        find.fetch_all(db).await.during(operation)
    }
}
