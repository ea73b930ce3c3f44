//! A backlog, drained by one process and by four that share its concurrency.

use super::{Bench, Entrant, Place, Subject, Variant, interleave};
use crate::contender::{self, Claims, Kind, Setup};
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use mailslot_load::{Sample, Span, drain, fill};
use std::time::Duration;

/// Handlers at once, of all processes together.
const CONCURRENCY: usize = 64;

/// The raw reference's claiming connections, of all processes together.
const CLAIMS: Claims = Claims { connections: 4, batch: 100 };

/// How long a drain may take before it is cut.
const TIME: Duration = Duration::from_secs(4);

const fn entrant(kind: Kind, processes: usize) -> Entrant {
    Entrant { kind, variant: Variant::Processes(processes) }
}

const ENTRANTS: [Entrant; 4] =
    [entrant(Kind::Mailslot, 4), entrant(Kind::Mailslot, 1), entrant(Kind::Raw, 4), entrant(Kind::Raw, 1)];

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let stores = bench.options.stores_of(Suite::Processes);
    let samples = stores.len() * ENTRANTS.len();
    for durability in stores {
        let span = bench.options.span(Suite::Processes, durability, samples);
        let span = Span { measured: span.measured.max(TIME), ..span };
        let case = format!("drain, no-op, concurrency {CONCURRENCY}");
        let subject = Subject { suite: Suite::Processes, durability, case, better: Better::Rate };
        let sample = async |entrant| self::sample(bench, durability, entrant, span).await;
        interleave(bench, report, subject, &ENTRANTS, sample).await?;
    }
    Ok(())
}

async fn sample(
    bench: &Bench<'_>,
    durability: Durability,
    entrant: Entrant,
    span: Span,
) -> anyhow::Result<Sample> {
    let backlog = bench.options.messages(bench.options.backlog);
    let place = Place::new(bench, durability).await?;
    let processes = if let Variant::Processes(processes) = entrant.variant { processes } else { 1 };
    let setup = Setup { concurrency: CONCURRENCY, claims: CLAIMS, processes, ..place.setup() };
    let worker = contender::open_worker(entrant.kind, &setup).await?;
    fill(worker.clone(), backlog).await?;
    drain(worker, backlog as u64, span, place.gauge()).await
}
