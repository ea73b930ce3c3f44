//! What a claim costs while somebody holds an old snapshot: the server keeps every entry that was deleted since, and a
//! claim that starts at the beginning walks past all of them. One caller appends and exchanges; the last quarter of what
//! passes is measured, where most of them lie.

use super::bare::Bare;
use super::{Bench, Entrant, Place, Subject, Variant, interleave};
use crate::contender::Kind;
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use mailslot_load::Sample;

/// Messages of one claim.
const LIMIT: usize = 200;

const fn entrant(kind: Kind, held: bool) -> Entrant {
    Entrant { kind, variant: Variant::Snapshot(held) }
}

const ENTRANTS: [Entrant; 4] = [
    entrant(Kind::Mailslot, true),
    entrant(Kind::Mailslot, false),
    entrant(Kind::Raw, true),
    entrant(Kind::Raw, false),
];

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let passing = bench.options.messages(bench.options.passing);
    for durability in bench.options.stores_of(Suite::Snapshot) {
        let case = format!("settle and lease {LIMIT} while {passing} pass");
        let subject = Subject { suite: Suite::Snapshot, durability, case, better: Better::Rate };
        let sample = async |entrant| self::sample(bench, durability, entrant, passing as u64).await;
        interleave(bench, report, subject, &ENTRANTS, sample).await?;
    }
    Ok(())
}

async fn sample(
    bench: &Bench<'_>,
    durability: Durability,
    entrant: Entrant,
    passing: u64,
) -> anyhow::Result<Sample> {
    let place = Place::new(bench, durability).await?;
    let mut bare = Bare::open(entrant.kind, &place, LIMIT).await?;
    let held = entrant.variant == Variant::Snapshot(true);
    let _held = if held { Some(bench.server()?.hold_snapshot().await?) } else { None };
    let before = passing / 4 * 3;
    bare.pass(LIMIT, |passed| passed < before).await?;
    Ok(bare.pass(LIMIT, |passed| passed < passing - before).await?.sample())
}
