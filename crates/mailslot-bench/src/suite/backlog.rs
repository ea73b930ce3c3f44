//! What a claim costs before a long backlog, and beside many messages that are due much later. One caller appends as
//! much as it exchanges, so the backlog keeps its length.

use super::bare::{Bare, Fill};
use super::{Bench, Entrant, Place, Subject, Variant, interleave};
use crate::contender::Kind;
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use anyhow::Context as _;
use mailslot_load::{Sample, Span};
use std::time::Instant;

/// Messages of one claim.
const LIMIT: usize = 200;

/// What counts as a short backlog.
const FEW: usize = 1_000;

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let many = bench.options.messages(bench.options.waiting);
    let few = FEW.min(many / 2);
    let entrant = |kind, count| Entrant { kind, variant: Variant::Beside(count) };
    let both = [Kind::Mailslot, Kind::Raw].map(|kind| [entrant(kind, many), entrant(kind, few)]).concat();
    let cases = [(Fill::Due, "due", &both[..]), (Fill::Later, "due in a year", &both[..2])];
    let stores = bench.options.stores_of(Suite::Backlog);
    let samples = stores.len() * 6;
    for durability in stores {
        let span = bench.options.span(Suite::Backlog, durability, samples);
        for (fill, what, entrants) in cases {
            let case = format!("settle and lease {LIMIT}, {many} {what}");
            if bench.options.wants(&case) {
                let subject = Subject { suite: Suite::Backlog, durability, case, better: Better::Rate };
                let mut filled = Filled::fill(bench, durability, entrants, fill).await?;
                let sample = async |entrant| filled.sample(entrant, span).await;
                interleave(bench, report, subject, entrants, sample).await?;
            }
        }
    }
    Ok(())
}

/// Stores that are filled once and sampled in turn.
struct Filled(Vec<(Entrant, Bare, Place)>);

impl Filled {
    async fn fill(
        bench: &Bench<'_>,
        durability: Durability,
        entrants: &[Entrant],
        fill: Fill,
    ) -> anyhow::Result<Self> {
        let mut filled = Vec::with_capacity(entrants.len());
        for &entrant in entrants {
            let place = Place::new(bench, durability).await?;
            let mut bare = Bare::open(entrant.kind, &place, LIMIT).await?;
            let count = if let Variant::Beside(count) = entrant.variant { count } else { 0 };
            Report::progress(&format!("filling {} with {count} messages", entrant.kind.name()));
            bare.fill(count, fill).await?;
            filled.push((entrant, bare, place));
        }
        Ok(Self(filled))
    }

    async fn sample(&mut self, entrant: Entrant, span: Span) -> anyhow::Result<Sample> {
        let found = self.0.iter_mut().find(|(filled, ..)| *filled == entrant);
        let (_, bare, _) = found.context("every entrant is filled")?;
        let begun = Instant::now();
        bare.pass(LIMIT, |passed| passed == 0 || begun.elapsed() < span.warm_up).await?;
        let begun = Instant::now();
        let passed = bare.pass(LIMIT, |passed| passed == 0 || begun.elapsed() < span.measured).await?;
        Ok(passed.sample())
    }
}
