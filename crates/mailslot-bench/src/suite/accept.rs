//! Accepts alone: closed-loop callers, one message or one batch for each call.

use super::{Place, Subject, interleave};
use crate::contender::{self, Kind};
use crate::measure::closed_loop;
use crate::options::{Durability, Options, Span, Suite};
use crate::report::{Better, Report};
use std::sync::Arc;

/// One case: who calls, and with what.
#[derive(Debug, Clone, Copy)]
struct Case {
    callers: usize,
    /// Messages for each call; 1 goes through `accept`.
    batch: usize,
    keyed: bool,
}

const CASES: [Case; 8] = [
    Case { callers: 1, batch: 1, keyed: true },
    Case { callers: 16, batch: 1, keyed: true },
    Case { callers: 256, batch: 1, keyed: true },
    Case { callers: 1, batch: 1, keyed: false },
    Case { callers: 16, batch: 1, keyed: false },
    Case { callers: 256, batch: 1, keyed: false },
    Case { callers: 1, batch: 100, keyed: true },
    Case { callers: 1, batch: 1_000, keyed: true },
];

impl Case {
    fn name(self) -> String {
        let Self { callers, batch, keyed } = self;
        match batch {
            1 => format!("{callers} callers, {}", if keyed { "keyed" } else { "no key" }),
            _ => format!("batch of {batch}, keyed"),
        }
    }

    fn kinds(self, durability: Durability) -> &'static [Kind] {
        match (durability, self.keyed, self.batch) {
            (Durability::Memory, ..) | (_, false, _) => &[Kind::Mailslot, Kind::Raw],
            (_, true, 1) => &[Kind::Mailslot, Kind::Raw, Kind::RawSqlx, Kind::OneByOne],
            (_, true, _) => &[Kind::Mailslot, Kind::Raw, Kind::RawSqlx],
        }
    }
}

pub(super) async fn run(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let samples: usize = options
        .stores()
        .iter()
        .flat_map(|store| CASES.iter().map(|case| case.kinds(*store).len() * options.repetitions()))
        .sum();
    let span = options.span(Suite::Accept, samples);
    for durability in options.stores() {
        for case in CASES {
            let subject =
                Subject { suite: Suite::Accept, durability, case: case.name(), better: Better::Rate };
            let sample = async |kind| self::sample(options, durability, case, kind, span).await;
            interleave(options, report, subject, case.kinds(durability), sample).await?;
        }
    }
    Ok(())
}

async fn sample(
    options: &Options,
    durability: Durability,
    case: Case,
    kind: Kind,
    span: Span,
) -> anyhow::Result<crate::measure::Sample> {
    let place = Place::new(options)?;
    let target = contender::open(kind, &place.setup(durability)).await?;
    let counted = target.clone();
    let call = move || {
        let target = Arc::clone(&target);
        async move {
            match case.batch {
                1 => target.accept(case.keyed).await,
                batch => target.accept_batch(batch).await,
            }
        }
    };
    closed_loop(case.callers, case.batch as u64, span, || counted.commits(), || true, call).await
}
