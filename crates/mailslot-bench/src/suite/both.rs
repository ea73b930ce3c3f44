//! Both at once: callers accept as fast as they can while one worker executes. The rate is that of the slower side.

use super::{Bench, Entrant, Place, Subject, Variant, interleave, plain};
use crate::contender::{self, Kind, Setup};
use crate::options::{Durability, Options, Suite};
use crate::report::{Better, Report};
use mailslot_load::{Load, Sample, Span};
use std::time::Duration;

const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// Handlers at once.
const CONCURRENCY: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Case {
    callers: usize,
    keyed: bool,
    /// Whether somebody holds an old snapshot.
    held: bool,
}

const fn keyed(callers: usize) -> Case {
    Case { callers, keyed: true, held: false }
}

/// So many callers that accepting is faster than executing: ours runs with accepts that wait, and without.
const MANY: usize = 1_024;

/// How old the oldest due message may be before accepts wait, in that case.
const MAX_AGE: Duration = Duration::from_millis(250);

impl Case {
    fn entrants(self, durability: Durability) -> Vec<Entrant> {
        let waits = Entrant { kind: Kind::Mailslot, variant: Variant::MaxAge(MAX_AGE) };
        let outruns = durability == Durability::Postgres && self.callers == MANY;
        let first = if outruns { vec![waits] } else { Vec::new() };
        [first, plain(&KINDS)].concat()
    }

    fn name(self) -> String {
        let key = if self.keyed { "" } else { ", no key" };
        let held = if self.held { ", old snapshot held" } else { "" };
        format!("{} callers, one worker{key}{held}", self.callers)
    }
}

/// The cases of a store. The one without a key tells what a message costs that has none.
fn cases(durability: Durability, options: &Options) -> Vec<Case> {
    let no_key = Case { keyed: false, ..keyed(64) };
    let held = |callers| Case { held: true, ..keyed(callers) };
    match durability {
        Durability::Postgres if options.thorough => {
            vec![keyed(16), keyed(64), keyed(256), held(256), keyed(MANY), held(MANY), no_key]
        }
        Durability::Postgres => vec![keyed(256), held(256), keyed(MANY), no_key],
        _ => vec![keyed(64), keyed(256)],
    }
}

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let stores = bench.options.stores_of(Suite::Both);
    let count = |store: &Durability| -> usize {
        cases(*store, bench.options).iter().map(|case| case.entrants(*store).len()).sum()
    };
    let samples = stores.iter().map(count).sum();
    for durability in stores {
        let short = bench.options.span(Suite::Both, durability, samples);
        for case in cases(durability, bench.options) {
            let long = durability == Durability::Postgres && case.keyed;
            let span = if long { bench.options.long_span(short) } else { short };
            let subject = Subject { suite: Suite::Both, durability, case: case.name(), better: Better::Rate };
            let load = Load { callers: case.callers, batch: 1, keyed: case.keyed, span };
            let sample =
                async |entrant: Entrant| self::sample(bench, durability, entrant, load, case.held).await;
            interleave(bench, report, subject, &case.entrants(durability), sample).await?;
        }
    }
    Ok(())
}

/// The rate that one worker sustains, for suites that need a part of it.
pub(super) async fn full_load(
    bench: &Bench<'_>,
    durability: Durability,
    callers: usize,
    span: Span,
) -> anyhow::Result<f64> {
    let load = Load { callers, batch: 1, keyed: true, span };
    Ok(sample(bench, durability, Entrant::plain(Kind::Mailslot), load, false).await?.per_second)
}

async fn sample(
    bench: &Bench<'_>,
    durability: Durability,
    entrant: Entrant,
    load: Load,
    held: bool,
) -> anyhow::Result<Sample> {
    let place = Place::new(bench, durability).await?;
    let max_age = if let Variant::MaxAge(age) = entrant.variant { Some(age) } else { None };
    let setup = Setup { concurrency: CONCURRENCY, max_age, ..place.setup() };
    let worker = contender::open_worker(entrant.kind, &setup).await?;
    let _held = if held { Some(bench.server()?.hold_snapshot().await?) } else { None };
    mailslot_load::both(worker, load, place.gauge()).await
}
