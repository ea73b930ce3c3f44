//! `mailslot doctor`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Cell, Colour, Output, Table, counted};
use crate::store::open_operator;
use mailslot::WakeMode;
use mailslot::store::Violation;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long `doctor` waits for a listener that is connecting, so that it does not report what holds for a moment only.
const LISTENER_PATIENCE: Duration = Duration::from_secs(2);

/// What must hold in every store, and what it means. One that is not listed is shown when it is violated.
const INVARIANTS: &[(&str, &str)] = &[
    ("copies", "what is kept in two places is the same in both"),
    ("counts", "the counters match the messages"),
    ("end_is_last", "the end of a message is its last outcome"),
    ("member_without_lease", "every leased message has its lease"),
    ("one_in_flight", "only the head of a session is in flight"),
    ("one_place", "every message is in exactly one place"),
    ("parked_waits", "every parked message waits behind an earlier head"),
    ("place_of_nothing", "every place, outcome and ledger record has its message"),
    ("readable", "every stored value can be read"),
    ("schema", "the schema is what this version creates"),
    ("session_without_head", "every session has a head that has not ended well"),
];

/// The same for stores of one kind.
const OF_KIND: &[(&str, &str, &str)] = &[
    ("sqlite", "file_intact", "the file is not damaged"),
    ("postgres", "one_end", "every attempt has ended once at the most"),
    ("postgres", "partitions", "there is a partition for what is accepted now, and for what comes next"),
];

/// The invariants of a kind of store with their meanings.
fn known(backend: &str) -> BTreeMap<&'static str, &'static str> {
    let of_kind = OF_KIND.iter().filter(|(kind, ..)| *kind == backend);
    let of_kind = of_kind.map(|(_, name, meaning)| (*name, *meaning));
    INVARIANTS.iter().copied().chain(of_kind).collect()
}

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
    /// How the accepts of other processes are noticed, where the store can say.
    wakeups: Option<&'static str>,
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
    // Last, because a listener connects meanwhile.
    let wake_mode = operator.wake_mode(LISTENER_PATIENCE).await;
    let report = Report {
        ok: violations.is_empty(),
        schema: SchemaView { backend: schema.backend, found: schema.found, wanted: schema.wanted },
        wakeups: wake_mode.map(WakeMode::as_str),
        invariants: invariants(schema.backend, &violations),
        violations: violations.iter().map(ViolationView::from).collect(),
        repaired: repaired.iter().map(ViolationView::from).collect(),
    };
    if output.json {
        output.document(&report)?;
    } else {
        print(output, &report, wake_mode)?;
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

fn invariants(backend: &str, violations: &[Violation]) -> Vec<InvariantView> {
    let broken: BTreeSet<_> = violations.iter().map(|violation| violation.invariant).collect();
    let all: BTreeSet<_> = known(backend).into_keys().chain(broken.iter().copied()).collect();
    all.into_iter().map(|name| InvariantView { name, ok: !broken.contains(name) }).collect()
}

fn print(output: Output, report: &Report<'_>, wake_mode: Option<WakeMode>) -> Result<(), Error> {
    let SchemaView { backend, found, wanted } = report.schema;
    output.line(format!("schema of {backend}: {found}, wanted {wanted}"))?;
    if let Some(mode) = wake_mode {
        output.line(format!("wake-ups: {mode}"))?;
    }
    let known = known(backend);
    let mut table = Table::new(["INVARIANT", "", "WHAT MUST HOLD"]);
    for InvariantView { name, ok } in &report.invariants {
        let result =
            if *ok { Cell::coloured("ok", Colour::Green) } else { Cell::coloured("violated", Colour::Red) };
        let meaning = known.get(name).copied().unwrap_or_default();
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
