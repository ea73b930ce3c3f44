//! A backlog, drained by one process: from the claim to the settled outcome. The rate is that of the middle of the
//! drain, without its start and its end.

use super::{Place, Subject, interleave};
use crate::contender::{self, Kind, Setup, Worker};
use crate::measure::{Meter, Sample, float};
use crate::options::{Durability, Options, Span, Suite};
use crate::report::{Better, Report};
use anyhow::{Context as _, ensure};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

#[derive(Debug, Clone, Copy)]
struct Case {
    concurrency: usize,
    handler: Option<Duration>,
}

const CASES: [Case; 3] = [
    Case { concurrency: 16, handler: None },
    Case { concurrency: 64, handler: None },
    Case { concurrency: 64, handler: Some(Duration::from_millis(1)) },
];

const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

/// Messages in one call while the backlog is made.
const FILL: usize = 1_000;

/// How often the counter is read.
const LOOK: Duration = Duration::from_millis(1);

impl Case {
    fn name(self) -> String {
        let handler = if self.handler.is_some() { "1 ms handlers" } else { "no-op" };
        format!("drain, {handler}, concurrency {}", self.concurrency)
    }
}

pub(super) async fn run(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let samples = options.stores().len() * CASES.len() * KINDS.len() * options.repetitions();
    let span = options.span(Suite::Execute, samples);
    for durability in options.stores() {
        let templates = Templates::fill(options, durability).await?;
        for case in CASES {
            let subject =
                Subject { suite: Suite::Execute, durability, case: case.name(), better: Better::Rate };
            let sample = async |kind| self::sample(options, &templates, case, kind, span).await;
            interleave(options, report, subject, &KINDS, sample).await?;
        }
    }
    Ok(())
}

/// Filled files, to be copied for each sample: filling takes longer than draining.
struct Templates {
    durability: Durability,
    files: HashMap<&'static str, PathBuf>,
    _place: Place,
}

impl Templates {
    async fn fill(options: &Options, durability: Durability) -> anyhow::Result<Self> {
        let place = Place::new(options)?;
        let mut files = HashMap::new();
        if durability != Durability::Memory {
            for kind in KINDS {
                let setup = Setup {
                    path: place.path().join(format!("{}.db", kind.name())),
                    ..place.setup(Durability::Normal)
                };
                fill(contender::open_worker(kind, &setup).await?, options.backlog()).await?;
                let copy = setup.path.with_extension("full.db");
                let db = rusqlite::Connection::open(&setup.path)?;
                let path = copy.to_str().context("the directory's name is not UTF-8")?;
                db.execute("VACUUM INTO ?1", [path])?;
                files.insert(kind.name(), copy);
            }
        }
        Ok(Self { durability, files, _place: place })
    }
}

async fn fill(worker: Arc<dyn Worker>, backlog: usize) -> anyhow::Result<()> {
    for begin in (0..backlog).step_by(FILL) {
        worker.accept_batch(FILL.min(backlog - begin)).await?;
    }
    Ok(())
}

async fn sample(
    options: &Options,
    templates: &Templates,
    case: Case,
    kind: Kind,
    span: Span,
) -> anyhow::Result<Sample> {
    let place = Place::new(options)?;
    let setup =
        Setup { concurrency: case.concurrency, handler: case.handler, ..place.setup(templates.durability) };
    if let Some(template) = templates.files.get(kind.name()) {
        std::fs::copy(template, &setup.path)?;
    }
    let worker = contender::open_worker(kind, &setup).await?;
    if templates.durability == Durability::Memory {
        fill(worker.clone(), options.backlog()).await?;
    }
    drain(worker, options.backlog() as u64, span).await
}

async fn drain(worker: Arc<dyn Worker>, backlog: u64, span: Span) -> anyhow::Result<Sample> {
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run(stopped).await }
    });
    let opened = Meter::start();
    let enough = |done: u64, part: f64| float(done) >= float(backlog) * part;
    while !enough(worker.completed(), 0.05) && !running.is_finished() {
        tokio::time::sleep(LOOK).await;
    }
    let (mut meter, mut before, mut commits) = (Meter::start(), worker.completed(), worker.commits());
    if enough(before, 0.95) {
        // Faster than the first look: only the whole is left to be measured.
        (meter, before, commits) = (opened, 0, 0);
    }
    while !enough(worker.completed(), 0.95) && meter.elapsed() < span.measured && !running.is_finished() {
        tokio::time::sleep(LOOK).await;
    }
    let done = worker.completed() - before;
    let sample = meter.stop(done, worker.commits() - commits);
    // A worker that failed may not listen.
    let _ = stop.send(());
    running.await??;
    ensure!(done > 0, "nothing was executed in {:?}", opened.elapsed());
    Ok(sample)
}
