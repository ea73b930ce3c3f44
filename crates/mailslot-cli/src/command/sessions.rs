//! `mailslot sessions`.

use crate::args::Global;
use crate::error::Error;
use crate::output::{Cell, Output, Table, status_cell};
use crate::store::open_operator;
use mailslot::store::SessionRecord;
use mailslot::{EndpointName, MessageId, SessionKey, Status, TenantName};
use serde::Serialize;

/// A session is blocked if its head is dead-lettered or suspended: someone has to act before it goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only sessions that wait for someone to act
    #[arg(long)]
    blocked: bool,
    /// How many at most
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

#[derive(Serialize)]
struct SessionView<'a> {
    endpoint: &'a EndpointName,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a TenantName>,
    session: &'a SessionKey,
    head: MessageId,
    head_status: Status,
    blocked: bool,
    parked: u64,
}

impl<'a> From<&'a SessionRecord> for SessionView<'a> {
    fn from(record: &'a SessionRecord) -> Self {
        Self {
            endpoint: &record.endpoint,
            tenant: record.tenant.as_ref(),
            session: &record.key,
            head: record.head,
            head_status: record.head_status,
            blocked: record.is_blocked(),
            parked: record.parked,
        }
    }
}

/// Prints them by key.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let sessions = open_operator(global).await?.sessions(args.blocked, args.limit).await?;
    if output.json {
        return output.document(&sessions.iter().map(SessionView::from).collect::<Vec<_>>());
    }
    let mut table = Table::new(["SESSION", "TENANT", "ENDPOINT", "HEAD", "STATE", "WAITING"]);
    for session in &sessions {
        table.row(vec![
            (&session.key).into(),
            session.tenant.as_ref().map_or("-", TenantName::as_str).into(),
            (&session.endpoint).into(),
            session.head.into(),
            status_cell(session.head_status),
            Cell::number(session.parked),
        ]);
    }
    let nothing = if args.blocked { "no session is blocked" } else { "no session is open" };
    output.table(&table, nothing)
}
