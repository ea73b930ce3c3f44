//! Accepts in the application's own transactions: begin, one change of its own, the message, commit.

use super::{Bench, Entrant, Place, Subject, interleave, plain};
use crate::contender::{Kind, open_transaction};
use crate::options::Suite;
use crate::report::{Better, Report};
use mailslot_load::Load;

const KINDS: [Kind; 3] = [Kind::Mailslot, Kind::Raw, Kind::NoMessage];

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let callers: &[usize] = if bench.options.thorough { &[1, 16, 64] } else { &[1, 64] };
    let stores = bench.options.stores_of(Suite::Transaction);
    let samples = stores.len() * callers.len() * KINDS.len();
    for durability in stores {
        let span = bench.options.span(Suite::Transaction, durability, samples);
        for &callers in callers {
            let case = format!("{callers} callers, keyed");
            let subject = Subject { suite: Suite::Transaction, durability, case, better: Better::Rate };
            let load = Load { callers, batch: 1, keyed: true, span };
            let sample = async |entrant: Entrant| {
                let place = Place::new(bench, durability).await?;
                let target = open_transaction(entrant.kind, &place.setup()).await?;
                mailslot_load::accept(target, load, place.gauge()).await
            };
            interleave(bench, report, subject, &plain(&KINDS), sample).await?;
        }
    }
    Ok(())
}
