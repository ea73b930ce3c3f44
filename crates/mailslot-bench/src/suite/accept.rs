//! Accepts alone: closed-loop callers, one message or one batch for each call.

use super::{Bench, Entrant, Place, Subject, Variant, interleave, plain};
use crate::contender::{self, Kind};
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use mailslot_load::{Load, Sample, Span};

/// One case: who calls, and with what.
#[derive(Debug, Clone, Copy)]
struct Case {
    callers: usize,
    /// Messages for each call; 1 goes through `accept`.
    batch: usize,
    keyed: bool,
    on: On,
}

/// Where a case is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    All,
    /// Not on PostgreSQL, unless everything is asked for.
    Embedded,
    /// On PostgreSQL only.
    Server,
    /// On PostgreSQL only, if everything is asked for.
    Thorough,
}

const fn single(callers: usize, keyed: bool, on: On) -> Case {
    Case { callers, batch: 1, keyed, on }
}

const fn batch(batch: usize, on: On) -> Case {
    Case { callers: 1, batch, keyed: true, on }
}

const CASES: [Case; 13] = [
    single(1, true, On::All),
    single(16, true, On::Embedded),
    single(PEER_CALLERS, true, On::Server),
    single(64, true, On::Server),
    single(256, true, On::All),
    single(1_024, true, On::Server),
    single(1, false, On::Embedded),
    single(16, false, On::Embedded),
    single(64, false, On::Thorough),
    single(256, false, On::All),
    single(1_024, false, On::Thorough),
    batch(100, On::Embedded),
    batch(1_000, On::All),
];

/// Other queues enqueue with as many callers as their pools have connections.
const PEER_CALLERS: usize = 32;

impl Case {
    fn name(self) -> String {
        let Self { callers, batch, keyed, .. } = self;
        match batch {
            1 => format!("{callers} callers, {}", if keyed { "keyed" } else { "no key" }),
            _ => format!("batch of {batch}, keyed"),
        }
    }

    fn runs(self, durability: Durability, thorough: bool) -> bool {
        match self.on {
            On::All => true,
            On::Embedded => durability != Durability::Postgres || thorough,
            On::Server => durability == Durability::Postgres,
            On::Thorough => durability == Durability::Postgres && thorough,
        }
    }

    fn entrants(self, durability: Durability) -> Vec<Entrant> {
        plain(match (durability, self.keyed, self.batch) {
            (Durability::Postgres, _, 1) => &[Kind::Mailslot, Kind::Raw, Kind::OneByOne],
            (Durability::Memory | Durability::Postgres, ..) | (_, false, _) => &[Kind::Mailslot, Kind::Raw],
            (_, true, 1) => &[Kind::Mailslot, Kind::Raw, Kind::RawSqlx, Kind::OneByOne],
            (_, true, _) => &[Kind::Mailslot, Kind::Raw, Kind::RawSqlx],
        })
    }
}

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let options = bench.options;
    let stores = options.stores_of(Suite::Accept);
    let all = stores.iter().flat_map(|store| CASES.map(|case| (*store, case)));
    let cases: Vec<_> = all.filter(|(store, case)| case.runs(*store, options.thorough)).collect();
    let samples: usize = cases.iter().map(|(store, case)| case.entrants(*store).len()).sum();
    for (durability, case) in cases {
        let span = options.span(Suite::Accept, durability, samples);
        let subject = Subject { suite: Suite::Accept, durability, case: case.name(), better: Better::Rate };
        let sample = async |entrant: Entrant| match (entrant.variant, bench.peers) {
            (Variant::Peer(peer), Some(peers)) => {
                peers.enqueue(peer, bench.server()?, case.callers, options.quick).await
            }
            _ => self::sample(bench, durability, case, entrant.kind, span).await,
        };
        let peers = if case.callers == PEER_CALLERS { bench.peers() } else { Vec::new() };
        let entrants = [case.entrants(durability), peers].concat();
        interleave(bench, report, subject, &entrants, sample).await?;
    }
    Ok(())
}

async fn sample(
    bench: &Bench<'_>,
    durability: Durability,
    case: Case,
    kind: Kind,
    span: Span,
) -> anyhow::Result<Sample> {
    let place = Place::new(bench, durability).await?;
    let target = contender::open(kind, &place.setup()).await?;
    let load = Load { callers: case.callers, batch: case.batch, keyed: case.keyed, span };
    mailslot_load::accept(target, load, place.gauge()).await
}
