//! `mailslot messages list`.

use crate::args::Global;
use crate::error::Error;
use crate::filter::FilterArgs;
use crate::output::{Cell, Output, Table, status_cell, time};
use crate::store::open_operator;
use crate::view::MessageView;
use mailslot::store::{Cursor, MessageRecord, Page, PageOrder, PageRequest};
use serde::Serialize;

/// The oldest first, unless asked otherwise. Payloads are never listed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: FilterArgs,
    /// How many on this page
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Go on after this page; the page before ends with its cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// The newest first
    #[arg(long)]
    newest: bool,
}

#[derive(Serialize)]
struct PageView<'a> {
    messages: Vec<MessageView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Cursor>,
}

/// Prints one page.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let filter = args.filter.filter(&[])?;
    let after = args.after.as_deref().map(str::parse).transpose()?;
    let order = if args.newest { PageOrder::NewestFirst } else { PageOrder::OldestFirst };
    let request = PageRequest { size: args.limit, after, order };
    let page = open_operator(global).await?.query(&filter, &request).await?;
    if output.json {
        let messages = page.items.iter().map(MessageView::from).collect();
        return output.document(&PageView { messages, next: page.next });
    }
    print(output, &page)
}

fn print(output: Output, page: &Page<MessageRecord>) -> Result<(), Error> {
    let mut table = Table::new(["ID", "STATE", "CONTRACT", "ENDPOINT", "ATTEMPT", "ACCEPTED", "REASON"]);
    for record in &page.items {
        table.row(vec![
            record.envelope.id.into(),
            status_cell(record.status),
            (&record.envelope.contract).into(),
            (&record.envelope.endpoint).into(),
            Cell::number(record.attempt.number),
            time(record.envelope.accepted_at).into(),
            record.reason.map_or("", |reason| reason.as_str()).into(),
        ]);
    }
    output.table(&table, "no message matches")?;
    if let Some(next) = page.next {
        output.line(format!("there are more: add --after {next}"))?;
    }
    Ok(())
}
