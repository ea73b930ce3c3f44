//! What both jobs cost beside millions of completed messages that are kept. Filling takes long, so it runs only if it is
//! named.

use super::{Bench, Entrant, Place, Subject, Variant, interleave};
use crate::contender::{self, Kind, Setup};
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use anyhow::Context as _;
use mailslot_load::{Load, Sample, Span, Worker, execute, fill};
use std::sync::Arc;

/// Handlers at once, as in the suite `both`.
const CONCURRENCY: usize = 64;

const CALLERS: usize = 256;

/// Messages that are filled and drained in one go: the backlog stays short.
const ROUND: usize = 100_000;

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let many = bench.options.messages(bench.options.retained);
    let entrant = |kind, count| Entrant { kind, variant: Variant::Beside(count) };
    let entrants = [Kind::Mailslot, Kind::Raw].map(|kind| [entrant(kind, many), entrant(kind, 0)]).concat();
    let stores = bench.options.stores_of(Suite::Retained);
    let samples = stores.len() * entrants.len();
    for durability in stores {
        let span = bench.options.span(Suite::Retained, durability, samples);
        let case = format!("{CALLERS} callers, one worker, {many} completed");
        let subject = Subject { suite: Suite::Retained, durability, case, better: Better::Rate };
        let filled = Filled::fill(bench, durability, &entrants).await?;
        let sample = async |entrant| filled.sample(bench, entrant, span).await;
        interleave(bench, report, subject, &entrants, sample).await?;
    }
    Ok(())
}

/// Stores that are filled once and sampled in turn.
struct Filled(Vec<(Entrant, Place)>);

impl Filled {
    async fn fill(bench: &Bench<'_>, durability: Durability, entrants: &[Entrant]) -> anyhow::Result<Self> {
        let mut filled = Vec::with_capacity(entrants.len());
        for &entrant in entrants {
            let place = Place::new(bench, durability).await?;
            let count = if let Variant::Beside(count) = entrant.variant { count } else { 0 };
            for begin in (0..count).step_by(ROUND) {
                Report::progress(&format!("{}: {begin} of {count} messages are done", entrant.kind.name()));
                let worker = open(entrant.kind, &place).await?;
                let round = ROUND.min(count - begin);
                fill(worker.clone(), round).await?;
                execute(worker, round as u64).await?;
            }
            filled.push((entrant, place));
        }
        Ok(Self(filled))
    }

    async fn sample(&self, bench: &Bench<'_>, entrant: Entrant, span: Span) -> anyhow::Result<Sample> {
        let (_, place) =
            self.0.iter().find(|(filled, _)| *filled == entrant).context("every entrant is filled")?;
        let worker = open(entrant.kind, place).await?;
        let load = Load { callers: CALLERS, batch: 1, keyed: true, span: bench.options.long_span(span) };
        mailslot_load::both(worker, load, place.gauge()).await
    }
}

async fn open(kind: Kind, place: &Place) -> anyhow::Result<Arc<dyn Worker>> {
    contender::open_worker(kind, &Setup { concurrency: CONCURRENCY, ..place.setup() }).await
}
