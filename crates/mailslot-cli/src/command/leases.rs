//! `mailslot leases`.

use crate::args::Global;
use crate::error::Error;
use crate::output::{Cell, Colour, Output, Table, distance, time};
use crate::store::{Missing, open};
use jiff::Timestamp;
use mailslot::store::LeaseRecord;
use mailslot::{InboxStore as _, Operator};
use serde::Serialize;
use uuid::Uuid;

/// Each claim of a worker is a lease of its own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many at most
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

#[derive(Serialize)]
struct LeaseView<'a> {
    worker: &'a str,
    owner: Uuid,
    generation: i64,
    until: Timestamp,
    expired: bool,
    messages: u64,
}

/// Prints them, the one that ends first on top.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let store = open(global, Missing::Refuse).await?;
    let now = store.now().await?;
    let leases = Operator::new(store).leases(args.limit).await?;
    if output.json {
        return output.document(&leases.iter().map(|lease| view(lease, now)).collect::<Vec<_>>());
    }
    let mut table = Table::new(["WORKER", "LEASE", "MESSAGES", "UNTIL", ""]);
    for lease in &leases {
        let left = if lease.until > now {
            Cell::from(distance(lease.until, now))
        } else {
            Cell::coloured("expired; the next worker takes its messages back", Colour::Yellow)
        };
        let messages = Cell::number(lease.messages);
        table.row(vec![
            (&lease.label).into(),
            lease.generation.into(),
            messages,
            time(lease.until).into(),
            left,
        ]);
    }
    output.table(&table, "no worker holds a message")
}

fn view(lease: &LeaseRecord, now: Timestamp) -> LeaseView<'_> {
    LeaseView {
        worker: &lease.label,
        owner: lease.owner,
        generation: lease.generation,
        until: lease.until,
        expired: lease.until <= now,
        messages: lease.messages,
    }
}
