//! `mailslot doctor`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Cell, Colour, Output, Table, counted};
use crate::store::open_operator;
use mailslot::store::Violation;
use serde::Serialize;
use std::collections::BTreeSet;

/// What must hold, and what it means. An invariant that a store adds is listed when it is violated.
const INVARIANTS: &[(&str, &str)] = &[
    ("copies", "what is kept in two places is the same in both"),
    ("counts", "the counters match the messages"),
    ("end_is_last", "the end of a message is its last outcome"),
    ("file_intact", "the file is not damaged"),
    ("member_without_lease", "every leased message has its lease"),
    ("one_in_flight", "only the head of a session is in flight"),
    ("one_place", "every message is in exactly one place"),
    ("parked_waits", "every parked message waits behind an earlier head"),
    ("place_of_nothing", "every place, outcome and ledger record has its message"),
    ("readable", "every stored value can be read"),
    ("schema", "the schema is what this version creates"),
    ("session_without_head", "every session has a head that has not ended well"),
];

/// Ends with 1 when something is wrong, or still wrong after a repair.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Mend what can be mended without losing anything
    #[arg(long)]
    repair: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    schema: SchemaView,
    invariants: Vec<InvariantView>,
    violations: Vec<ViolationView<'a>>,
    repaired: Vec<ViolationView<'a>>,
}

#[derive(Serialize)]
struct SchemaView {
    backend: &'static str,
    found: u32,
    wanted: u32,
}

#[derive(Serialize)]
struct InvariantView {
    name: &'static str,
    ok: bool,
}

#[derive(Serialize)]
struct ViolationView<'a> {
    invariant: &'static str,
    found: &'a str,
    cause: &'static str,
    repair: &'static str,
    repairable: bool,
}

impl<'a> From<&'a Violation> for ViolationView<'a> {
    fn from(violation: &'a Violation) -> Self {
        Self {
            invariant: violation.invariant,
            found: &violation.found,
            cause: violation.cause,
            repair: violation.repair,
            repairable: violation.repairable,
        }
    }
}

/// Checks, mends if asked, and checks again.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let operator = open_operator(global).await?;
    let schema = operator.schema().await?;
    let repaired = if args.repair { operator.repair().await? } else { Vec::new() };
    let violations = operator.check().await?;
    let report = Report {
        ok: violations.is_empty(),
        schema: SchemaView { backend: schema.backend, found: schema.found, wanted: schema.wanted },
        invariants: invariants(&violations),
        violations: violations.iter().map(ViolationView::from).collect(),
        repaired: repaired.iter().map(ViolationView::from).collect(),
    };
    if output.json {
        output.document(&report)?;
    } else {
        print(output, &report)?;
    }
    if report.ok {
        return Ok(());
    }
    let fix = if violations.iter().any(|violation| violation.repairable) && !args.repair {
        "stop the workers and run `mailslot doctor --repair`"
    } else {
        "follow what is said beside each"
    };
    let found = counted(violations.len() as u64, "violation");
    Err(Error::new(Exit::Failed, format!("{found} of what must hold: {fix}")))
}

fn invariants(violations: &[Violation]) -> Vec<InvariantView> {
    let broken: BTreeSet<_> = violations.iter().map(|violation| violation.invariant).collect();
    let known = INVARIANTS.iter().map(|(name, _)| *name);
    let all: BTreeSet<_> = known.chain(broken.iter().copied()).collect();
    all.into_iter().map(|name| InvariantView { name, ok: !broken.contains(name) }).collect()
}

fn print(output: Output, report: &Report<'_>) -> Result<(), Error> {
    let SchemaView { backend, found, wanted } = report.schema;
    output.line(format!("schema of {backend}: {found}, wanted {wanted}"))?;
    let mut table = Table::new(["INVARIANT", "", "WHAT MUST HOLD"]);
    for InvariantView { name, ok } in &report.invariants {
        let result =
            if *ok { Cell::coloured("ok", Colour::Green) } else { Cell::coloured("violated", Colour::Red) };
        let meaning = INVARIANTS.iter().find(|(known, _)| known == name).map_or("", |(_, meaning)| meaning);
        table.row(vec![name.into(), result, meaning.into()]);
    }
    output.table(&table, "")?;
    for (title, list) in [("repaired", &report.repaired), ("violated", &report.violations)] {
        for violation in list {
            output.line(format!("\n{title}: {}: {}", violation.invariant, violation.found))?;
            output.line(format!("  usual cause: {}", violation.cause))?;
            output.line(format!("  repair:      {}", violation.repair))?;
        }
    }
    Ok(())
}
