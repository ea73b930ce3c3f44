//! `mailslot counts`.

use crate::args::Global;
use crate::error::Error;
use crate::output::{Cell, Colour, Output, Table};
use crate::store::open_operator;
use mailslot::store::Count;
use mailslot::{Contract, EndpointName, Status};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is said of a contract of which messages wait and none is held.
const NOBODY: &str = "no worker holds any of them: does one have a route for this contract?";

#[derive(Serialize)]
struct LaneView<'a> {
    endpoint: &'a EndpointName,
    contract: &'a Contract,
    counts: BTreeMap<Status, u64>,
    /// Messages wait, and no worker holds one.
    unattended: bool,
}

/// Prints a row for each endpoint and contract, and marks those that nobody seems to work on.
pub(crate) async fn run(global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let counts = open_operator(global).await?.counts().await?;
    let lanes = lanes(&counts);
    if output.json {
        return output.document(&lanes);
    }
    output.table(&table(&lanes), "the store holds no messages")
}

fn lanes(counts: &[Count]) -> Vec<LaneView<'_>> {
    let mut lanes: BTreeMap<_, BTreeMap<Status, u64>> = BTreeMap::new();
    for count in counts {
        let lane = lanes.entry((&count.endpoint, &count.contract)).or_default();
        *lane.entry(count.status).or_default() += count.messages;
    }
    let view = |((endpoint, contract), counts): (_, BTreeMap<Status, u64>)| {
        let has = |status| counts.get(&status).is_some_and(|count| *count > 0);
        let unattended = has(Status::Pending) && !has(Status::Leased);
        LaneView { endpoint, contract, counts, unattended }
    };
    lanes.into_iter().map(view).collect()
}

fn table(lanes: &[LaneView<'_>]) -> Table {
    let used = |status: &Status| lanes.iter().any(|lane| lane.counts.contains_key(status));
    let statuses: Vec<_> = Status::ALL.iter().copied().filter(used).collect();
    let mut headings = vec!["ENDPOINT".to_owned(), "CONTRACT".to_owned()];
    headings.extend(statuses.iter().map(|status| status.as_str().to_uppercase()));
    headings.push(String::new());
    let mut table = Table::with(headings);
    for lane in lanes {
        let mut row: Vec<Cell> = vec![lane.endpoint.into(), lane.contract.into()];
        row.extend(statuses.iter().map(|status| Cell::number(lane.counts.get(status).copied().unwrap_or(0))));
        row.push(if lane.unattended { Cell::coloured(NOBODY, Colour::Yellow) } else { "".into() });
        table.row(row);
    }
    table
}
