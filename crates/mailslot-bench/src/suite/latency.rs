//! From the call of accept to the start of the handler: on an idle inbox, and at half of its load; in one process, and
//! from one to another.

use super::{Bench, Entrant, Place, Subject, both, interleave, plain};
use crate::contender::{self, Kind, Setup};
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use mailslot_load::{Sample, Span};
use std::time::Duration;

const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// Accepts a second on an idle inbox.
const IDLE: f64 = 20.0;

/// Callers of the sample that finds the full load.
const CALLERS: usize = 64;

/// How long a sample of an idle inbox takes on a server: a second has only twenty messages.
const IDLE_TIME: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
struct Case {
    rate: f64,
    /// Processes that execute, instead of the one that accepts.
    processes: usize,
    name: String,
}

impl Case {
    fn new(rate: f64, load: &str, processes: usize) -> Self {
        let apart = if processes > 0 { ", two processes" } else { "" };
        Self { rate, processes, name: format!("{load}{apart}") }
    }
}

/// The cases of a store, of which one worker sustains `full` messages a second.
fn cases(durability: Durability, full: f64, thorough: bool) -> Vec<Case> {
    let half = full / 2.0;
    let loads = [(IDLE, "idle, 20/s".to_owned()), (half, format!("half load, {half:.0}/s"))];
    let here = loads.iter().map(|(rate, load)| Case::new(*rate, load, 0));
    let apart = loads.iter().map(|(rate, load)| Case::new(*rate, load, 1));
    match durability {
        Durability::Postgres if thorough => here.chain(apart).collect(),
        Durability::Postgres => here.chain(apart.take(1)).collect(),
        _ => here.collect(),
    }
}

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let options = bench.options;
    let stores = options.stores_of(Suite::Latency);
    // One more sample for each store finds its full load.
    let count = |store: &Durability| 1 + cases(*store, 0.0, options.thorough).len() * KINDS.len();
    let samples = stores.iter().map(count).sum();
    for durability in stores {
        let span = options.span(Suite::Latency, durability, samples);
        let full = both::full_load(bench, durability, CALLERS, span).await?;
        for case in cases(durability, full, options.thorough) {
            let better = Better::Latency;
            let subject = Subject { suite: Suite::Latency, durability, case: case.name.clone(), better };
            let idle_on_server = case.rate <= IDLE && durability == Durability::Postgres && !options.quick;
            let measured = if idle_on_server { span.measured.max(IDLE_TIME) } else { span.measured };
            let span = Span { measured, ..span };
            let sample = async |entrant: Entrant| sample(bench, durability, &case, entrant.kind, span).await;
            interleave(bench, report, subject, &plain(&KINDS), sample).await?;
        }
    }
    Ok(())
}

async fn sample(
    bench: &Bench<'_>,
    durability: Durability,
    case: &Case,
    kind: Kind,
    span: Span,
) -> anyhow::Result<Sample> {
    let place = Place::new(bench, durability).await?;
    let setup = Setup { processes: case.processes, ..place.setup() };
    let worker = contender::open_worker(kind, &setup).await?;
    mailslot_load::latency(worker, case.rate, span, place.gauge()).await
}
