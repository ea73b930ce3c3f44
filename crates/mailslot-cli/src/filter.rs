//! Which messages: the filter of the library as flags.

use crate::args::instant;
use crate::error::Error;
use crate::exit::Exit;
use clap::Args;
use jiff::Timestamp;
use mailslot::store::Filter;
use mailslot::{FieldError, MessageId};
use std::str::FromStr;

/// Messages must match every flag that is given.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which messages")]
pub(crate) struct FilterArgs {
    /// In this state; several are separated by commas: pending, leased, parked, suspended, completed, skipped,
    /// `dead_lettered`, cancelled
    #[arg(long, value_delimiter = ',')]
    status: Vec<String>,
    /// Of this endpoint
    #[arg(long)]
    endpoint: Option<String>,
    /// Of this contract, as name@version
    #[arg(long)]
    contract: Option<String>,
    /// Of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Of this session
    #[arg(long)]
    session: Option<String>,
    /// Accepted with this idempotency key
    #[arg(long)]
    key: Option<String>,
    /// Of this conversation
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// Caused by this
    #[arg(long, value_name = "ID")]
    causation: Option<String>,
    /// Requeued so many times: what was seen, so that a change meets nothing newer
    #[arg(long, value_name = "COUNT")]
    generation: Option<u32>,
    /// Whose last outcome has this reason, such as `attempts_exhausted`
    #[arg(long)]
    reason: Option<String>,
    /// Accepted at or after this instant
    #[arg(long, value_name = "TIME", value_parser = instant)]
    accepted_from: Option<Timestamp>,
    /// Accepted before this instant
    #[arg(long, value_name = "TIME", value_parser = instant)]
    accepted_before: Option<Timestamp>,
}

impl FilterArgs {
    /// The filter, with ids if some are given.
    pub(crate) fn filter(&self, ids: &[String]) -> Result<Filter, Error> {
        let statuses = self.status.iter().map(|text| text.parse()).collect::<Result<Vec<_>, FieldError>>()?;
        Ok(Filter {
            ids: (!ids.is_empty()).then(|| message_ids(ids)).transpose()?,
            statuses: (!statuses.is_empty()).then_some(statuses),
            endpoint: read(self.endpoint.as_deref())?,
            contract: read(self.contract.as_deref())?,
            tenant: read(self.tenant.as_deref())?,
            session: read(self.session.as_deref())?,
            idempotency_key: read(self.key.as_deref())?,
            correlation: read(self.correlation.as_deref())?,
            causation: read(self.causation.as_deref())?,
            reason: read(self.reason.as_deref())?,
            generation: self.generation,
            accepted_from: self.accepted_from,
            accepted_before: self.accepted_before,
        })
    }
}

fn read<T: FromStr<Err = FieldError>>(text: Option<&str>) -> Result<Option<T>, Error> {
    Ok(text.map(str::parse).transpose()?)
}

/// Ids from the command line.
pub(crate) fn message_ids(ids: &[String]) -> Result<Vec<MessageId>, Error> {
    ids.iter().map(|id| message_id(id)).collect()
}

/// An id from the command line.
pub(crate) fn message_id(text: &str) -> Result<MessageId, Error> {
    text.parse().map_err(Error::from)
}

/// The error for an id that no message has.
pub(crate) fn no_such_message(id: MessageId) -> Error {
    Error::new(
        Exit::NotFound,
        format!("there is no message {id}: check the id and --store, or see `mailslot messages list`"),
    )
}
