//! A backlog, drained by one process: from the claim to the settled outcome.

use super::{Bench, Entrant, Place, Subject, Variant, interleave, plain};
use crate::contender::{self, Claims, Kind, Location, Setup};
use crate::options::{Durability, Suite};
use crate::report::{Better, Report};
use anyhow::Context as _;
use mailslot_load::{Sample, Span, drain, fill};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
struct Case {
    concurrency: usize,
    handler: Option<Duration>,
    /// Whether it runs on PostgreSQL only if everything is asked for.
    thorough: bool,
    /// Whether it runs on embedded stores.
    embedded: bool,
}

const NO_OP: Option<Duration> = None;
const SHORT: Option<Duration> = Some(Duration::from_millis(1));

const fn usual(concurrency: usize, handler: Option<Duration>, embedded: bool) -> Case {
    Case { concurrency, handler, thorough: false, embedded }
}

const fn thorough(concurrency: usize, handler: Option<Duration>, embedded: bool) -> Case {
    Case { thorough: true, ..usual(concurrency, handler, embedded) }
}

const CASES: [Case; 10] = [
    usual(1, NO_OP, false),
    thorough(4, NO_OP, false),
    thorough(16, NO_OP, true),
    usual(64, NO_OP, true),
    thorough(256, NO_OP, false),
    thorough(1, SHORT, false),
    thorough(4, SHORT, false),
    thorough(16, SHORT, false),
    usual(64, SHORT, true),
    thorough(256, SHORT, false),
];

const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// How long a drain may take on a server, before it is cut: a backlog of 100,000 in the usual case.
const SERVER_TIME: Duration = Duration::from_secs(4);

/// How the raw reference drains: the batch that the inbox takes by default is between the two.
const CLAIMS: [Claims; 2] = [Claims { connections: 4, batch: 100 }, Claims { connections: 4, batch: 500 }];

impl Case {
    fn name(self) -> String {
        let handler = if self.handler.is_some() { "1 ms handlers" } else { "no-op" };
        format!("drain, {handler}, concurrency {}", self.concurrency)
    }

    /// The one with more references than others.
    fn is_main(self) -> bool {
        self.handler.is_none() && self.concurrency == 64
    }

    fn runs(self, durability: Durability, all: bool) -> bool {
        if durability == Durability::Postgres { !self.thorough || all } else { self.embedded }
    }

    fn entrants(self, durability: Durability) -> Vec<Entrant> {
        if durability != Durability::Postgres {
            return plain(&KINDS);
        }
        let raw = CLAIMS.map(|claims| Entrant { kind: Kind::Raw, variant: Variant::Claims(claims) });
        let references = if self.is_main() { 2 } else { 1 };
        [&[Entrant::plain(Kind::Mailslot)], &raw[..references]].concat()
    }
}

pub(super) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let options = bench.options;
    let cases = |durability| CASES.into_iter().filter(move |case| case.runs(durability, options.thorough));
    let stores = options.stores_of(Suite::Execute);
    let samples = stores.iter().map(|store| cases(*store).count() * KINDS.len()).sum();
    for durability in stores {
        let span = options.span(Suite::Execute, durability, samples);
        let templates = Templates::fill(bench, durability).await?;
        for case in cases(durability) {
            let subject =
                Subject { suite: Suite::Execute, durability, case: case.name(), better: Better::Rate };
            let sample = async |entrant: Entrant| match (entrant.variant, bench.peers) {
                (Variant::Peer(peer), Some(peers)) => {
                    peers.execute(peer, bench.server()?, options.messages(options.backlog)).await
                }
                _ => self::sample(bench, &templates, case, entrant, span).await,
            };
            let compared = durability == Durability::Postgres && case.is_main();
            let peers = if compared { bench.peers() } else { Vec::new() };
            let entrants = [case.entrants(durability), peers].concat();
            interleave(bench, report, subject, &entrants, sample).await?;
        }
    }
    Ok(())
}

/// Filled files, to be copied for each sample: filling takes longer than draining. Other stores are filled each time.
struct Templates {
    durability: Durability,
    files: HashMap<&'static str, PathBuf>,
    _place: Option<Place>,
}

impl Templates {
    async fn fill(bench: &Bench<'_>, durability: Durability) -> anyhow::Result<Self> {
        let mut files = HashMap::new();
        if matches!(durability, Durability::Memory | Durability::Postgres) {
            return Ok(Self { durability, files, _place: None });
        }
        let place = Place::new(bench, Durability::Normal).await?;
        let folder = place.location.file()?.parent().context("a file is in a folder")?.to_owned();
        for kind in KINDS {
            let path = folder.join(format!("{}.db", kind.name()));
            let setup = Setup { place: Location::File(path.clone()), ..place.setup() };
            let backlog = bench.options.messages(bench.options.backlog);
            fill(contender::open(kind, &setup).await?, backlog).await?;
            let copy = path.with_extension("full.db");
            let db = rusqlite::Connection::open(&path)?;
            let target = copy.to_str().context("the directory's name is not UTF-8")?;
            db.execute("VACUUM INTO ?1", [target])?;
            files.insert(kind.name(), copy);
        }
        Ok(Self { durability, files, _place: Some(place) })
    }
}

async fn sample(
    bench: &Bench<'_>,
    templates: &Templates,
    case: Case,
    entrant: Entrant,
    span: Span,
) -> anyhow::Result<Sample> {
    let backlog = bench.options.messages(bench.options.backlog);
    let place = Place::new(bench, templates.durability).await?;
    let claims = if let Variant::Claims(claims) = entrant.variant { claims } else { Claims::default() };
    let setup = Setup { concurrency: case.concurrency, handler: case.handler, claims, ..place.setup() };
    let template = templates.files.get(entrant.kind.name());
    if let Some(template) = template {
        std::fs::copy(template, setup.place.file()?)?;
    }
    let worker = contender::open_worker(entrant.kind, &setup).await?;
    if template.is_none() {
        fill(worker.clone(), backlog).await?;
    }
    let server = templates.durability == Durability::Postgres;
    let measured = if server { span.measured.max(SERVER_TIME) } else { span.measured };
    drain(worker, backlog as u64, Span { measured, ..span }, place.gauge()).await
}
