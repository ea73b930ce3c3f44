//! `mailslot messages show`.

use super::why::why;
use crate::args::Global;
use crate::error::Error;
use crate::filter::{message_id, no_such_message};
use crate::output::{Output, Table, distance, status_cell, time, write_bytes};
use crate::store::{Missing, open};
use crate::view::{DetailView, payload_text};
use jiff::Timestamp;
use mailslot::store::{MessageDetail, MessageRecord};
use mailslot::{InboxStore as _, Operator, OutcomeRecord, TenantName};

/// The payload is printed only when asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message
    id: String,
    /// Its tenant, if several tenants chose the same id
    #[arg(long)]
    tenant: Option<String>,
    /// Print the payload too; what could steer the terminal is replaced
    #[arg(long)]
    payload: bool,
    /// Print the payload and nothing else, byte for byte
    #[arg(long, conflicts_with_all = ["payload", "json"])]
    raw: bool,
}

/// Prints the message.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let id = message_id(&args.id)?;
    let tenant = args.tenant.as_deref().map(TenantName::new).transpose()?;
    let store = open(global, Missing::Refuse).await?;
    let now = store.now().await?;
    let operator = Operator::new(store);
    let detail = operator.get(id, tenant.as_ref()).await?.ok_or_else(|| no_such_message(id))?;
    let output = Output::new(global);
    if args.raw {
        return write_bytes(detail.record.envelope.payload.bytes());
    }
    let why = why(&operator, &detail.record, now).await?;
    if output.json {
        return output.document(&DetailView::new(&detail, &why, args.payload));
    }
    print(output, &detail, &why, now)?;
    if args.payload {
        output.line(format!("\n{}\n{}", output.bold("PAYLOAD"), payload_text(&detail.record.envelope)))?;
    }
    Ok(())
}

fn print(output: Output, detail: &MessageDetail, why: &str, now: Timestamp) -> Result<(), Error> {
    let record = &detail.record;
    output.line(format!("{} is {}", record.envelope.id, output.painted(&status_cell(record.status))))?;
    output.line(why)?;
    output.line("")?;
    for (name, value) in facts(record, now) {
        output.line(format!("{name:<14} {value}"))?;
    }
    output.line(format!("\n{}", output.bold("HISTORY")))?;
    output.line(format!("{}  accepted", time(record.envelope.accepted_at)))?;
    let mut table = Table::new(["WHEN", "WHAT", "ATTEMPT", "REASON"]);
    for outcome in &detail.history {
        table.row(vec![
            time(outcome.at).into(),
            outcome.kind.into(),
            outcome.attempt.into(),
            outcome.reason.map_or("", |reason| reason.as_str()).into(),
        ]);
    }
    if !detail.history.is_empty() {
        output.table(&table, "")?;
    }
    print_errors(output, &detail.history)
}

fn print_errors(output: Output, history: &[OutcomeRecord]) -> Result<(), Error> {
    for outcome in history {
        let Some(error) = &outcome.error else { continue };
        output.line(format!("\nerror of attempt {}:", outcome.attempt))?;
        for line in error.as_str().lines() {
            output.line(format!("  {line}"))?;
        }
    }
    Ok(())
}

fn facts(record: &MessageRecord, now: Timestamp) -> Vec<(&'static str, String)> {
    let envelope = &record.envelope;
    let payload = &envelope.payload;
    let accepted = format!("{} ({})", envelope.accepted_at, distance(envelope.accepted_at, now));
    let mut facts = vec![
        ("contract", envelope.contract.to_string()),
        ("endpoint", envelope.endpoint.to_string()),
        ("accepted", accepted),
        ("attempt", record.attempt.to_string()),
        ("priority", format!("{:?}", envelope.priority).to_lowercase()),
        ("payload", format!("{} bytes of {}", payload.bytes().len(), payload.content_type().as_str())),
    ];
    let context = envelope.trace.context();
    let more = [
        ("tenant", envelope.tenant.as_ref().map(ToString::to_string)),
        ("session", envelope.session.as_ref().map(ToString::to_string)),
        ("key", envelope.idempotency_key.as_ref().map(ToString::to_string)),
        ("correlation", envelope.trace.correlation().map(ToString::to_string)),
        ("causation", envelope.trace.causation().map(ToString::to_string)),
        ("traceparent", context.map(|context| context.traceparent().to_owned())),
        ("tracestate", context.and_then(|context| context.tracestate()).map(str::to_owned)),
    ];
    facts.extend(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts.extend(envelope.headers.iter().map(|(name, value)| ("header", format!("{name}={value}"))));
    facts
}
