//! The store's trait without the engine: what is left of a difference is the engine's.

use super::bare::{Bare, Timed};
use super::{Bench, Entrant, Place, Subject, interleave, plain};
use crate::contender::Kind;
use crate::options::Suite;
use crate::report::{Better, Report};
use mailslot_load::{Reading, Sample, Span};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
enum Case {
    /// Groups of one message, this many in one call.
    Append(usize),
    /// Settles this many and claims this many, in one call.
    Exchange(usize),
}

impl Case {
    fn name(self) -> String {
        match self {
            Self::Append(groups) => format!("append {groups}, keyed"),
            Self::Exchange(messages) => format!("settle and lease {messages}"),
        }
    }
}

const CASES: [Case; 3] = [Case::Append(1), Case::Append(256), Case::Exchange(LIMIT)];
const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// Messages of one claim: as many as the inbox takes by default.
const LIMIT: usize = 200;

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let stores = bench.options.stores_of(Suite::Store);
    let samples = stores.len() * CASES.len() * KINDS.len();
    for durability in stores {
        let span = bench.options.span(Suite::Store, durability, samples);
        for case in CASES {
            let subject =
                Subject { suite: Suite::Store, durability, case: case.name(), better: Better::Rate };
            let sample = async |entrant: Entrant| {
                let place = Place::new(bench, durability).await?;
                let mut bare = Bare::open(entrant.kind, &place, LIMIT).await?;
                sample(&mut bare, case, span).await
            };
            interleave(bench, report, subject, &plain(&KINDS), sample).await?;
        }
    }
    Ok(())
}

async fn sample(bare: &mut Bare, case: Case, span: Span) -> anyhow::Result<Sample> {
    let (mut commits, mut messages, mut busy, mut cpu) = (0, 0, Duration::ZERO, Duration::ZERO);
    let begun = Instant::now();
    // One call at least, however busy the machine is.
    while begun.elapsed() < span.warm_up + span.measured || commits == 0 {
        let warm = begun.elapsed() >= span.warm_up;
        let Timed { done, took, cost } = match case {
            Case::Append(groups) => bare.append(groups).await?,
            Case::Exchange(limit) => {
                // Something to lease, made outside the time.
                bare.append(limit).await?;
                bare.exchange(limit).await?
            }
        };
        if warm {
            commits += 1;
            messages += done;
            busy += took;
            cpu += cost;
        }
    }
    let reading = |cpu, commits| Reading { cpu, commits, ..Reading::default() };
    Ok(Sample::of(messages, busy, &reading(Duration::ZERO, 0), &reading(cpu, commits)))
}
