//! The suites: each makes its cases, runs ours and the references in turn, and adds rows to the report.

mod accept;
mod backlog;
mod bare;
mod both;
mod execute;
mod latency;
mod processes;
mod retained;
mod snapshot;
mod store;
mod transaction;

use crate::contender::{Claims, Kind, Location, Setup};
use crate::options::{Durability, Options, Suite};
use crate::peers::Peers;
use crate::report::{Better, Measured, Report, Row};
use crate::server::Server;
use anyhow::Context as _;
use mailslot_load::{Sample, ServerGauge, latencies};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A run: what was asked for, and where.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) server: Option<&'a Arc<Server>>,
    pub(crate) peers: Option<&'a Peers>,
}

/// Runs what was asked for.
pub(crate) async fn run(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    for suite in bench.options.suites() {
        match suite {
            Suite::Accept => accept::run(bench, report).await?,
            Suite::Transaction => transaction::run(bench, report).await?,
            Suite::Store => store::run(bench, report).await?,
            Suite::Execute => execute::run(bench, report).await?,
            Suite::Processes => processes::run(bench, report).await?,
            Suite::Latency => latency::run(bench, report).await?,
            Suite::Both => both::run(bench, report).await?,
            Suite::Snapshot => snapshot::run(bench, report).await?,
            Suite::Backlog => backlog::run(bench, report).await?,
            Suite::Retained => retained::run(bench, report).await?,
        }
    }
    Ok(())
}

impl Bench<'_> {
    fn server(&self) -> anyhow::Result<&Arc<Server>> {
        self.server.context("no PostgreSQL server is there")
    }

    /// The other queues, as entrants.
    fn peers(&self) -> Vec<Entrant> {
        let count = self.peers.map_or(0, |peers| peers.listed.len());
        (0..count).map(|place| Entrant { kind: Kind::Peer, variant: Variant::Peer(place) }).collect()
    }

    /// In what an entrant differs from others of its kind.
    fn variant(&self, entrant: Entrant) -> Option<String> {
        match entrant.variant {
            Variant::Plain => None,
            Variant::Snapshot(true) => Some("snapshot held".into()),
            Variant::Snapshot(false) => Some("nothing held".into()),
            Variant::Processes(1) => Some("1 process".into()),
            Variant::Processes(count) => Some(format!("{count} processes")),
            Variant::Beside(count) => Some(format!("beside {count}")),
            Variant::Claims(Claims { connections, batch }) => Some(format!("{connections} x {batch}")),
            Variant::MaxAge(age) => Some(format!("waits at {} ms", age.as_millis())),
            Variant::Peer(place) => Some(self.peers?.listed.get(place)?.name.clone()),
        }
    }
}

/// A fresh place for one sample; what is in it goes with the value, or before the next sample.
struct Place {
    durability: Durability,
    location: Location,
    server: Option<Arc<Server>>,
    _files: TempDir,
}

impl Place {
    async fn new(bench: &Bench<'_>, durability: Durability) -> anyhow::Result<Self> {
        let mut files = tempfile::Builder::new();
        files.prefix("mailslot-bench-");
        let files = match &bench.options.dir {
            Some(dir) => files.tempdir_in(dir)?,
            None => files.tempdir()?,
        };
        let (location, server) = match durability {
            Durability::Memory => (Location::Memory, None),
            Durability::Full | Durability::Normal => (Location::File(files.path().join("bench.db")), None),
            Durability::Postgres => {
                let server = bench.server()?;
                (Location::Schema(server.schema().await?), Some(server.clone()))
            }
        };
        Ok(Self { durability, location, server, _files: files })
    }

    fn setup(&self) -> Setup {
        Setup {
            durability: self.durability,
            place: self.location.clone(),
            concurrency: 16,
            handler: None,
            claims: Claims::default(),
            max_age: None,
            processes: 0,
        }
    }

    /// What reads the costs of its server, if it has one.
    fn gauge(&self) -> Option<&dyn ServerGauge> {
        self.server.as_deref().map(|server| server as &dyn ServerGauge)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let (Some(server), Location::Schema(schema)) = (&self.server, &self.location) {
            server.over(&schema.name);
        }
    }
}

/// What a row is about.
struct Subject {
    suite: Suite,
    durability: Durability,
    case: String,
    better: Better,
}

/// Who is measured for a row, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entrant {
    kind: Kind,
    variant: Variant,
}

/// In what an entrant differs from others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Plain,
    /// Whether somebody holds an old snapshot.
    Snapshot(bool),
    /// Processes that execute.
    Processes(usize),
    /// Messages that are there beside those that pass.
    Beside(usize),
    Claims(Claims),
    /// Accepts wait while a message has been due for longer than this.
    MaxAge(Duration),
    /// Another queue, by its place in their list.
    Peer(usize),
}

impl Entrant {
    const fn plain(kind: Kind) -> Self {
        Self { kind, variant: Variant::Plain }
    }
}

/// Plain entrants of these kinds.
fn plain(kinds: &[Kind]) -> Vec<Entrant> {
    kinds.iter().copied().map(Entrant::plain).collect()
}

/// Samples every entrant once in each round, so that a disturbance of the machine hits all of them, and makes a row of
/// the medians. The first one is ours.
async fn interleave(
    bench: &Bench<'_>,
    report: &mut Report,
    subject: Subject,
    entrants: &[Entrant],
    mut sample: impl AsyncFnMut(Entrant) -> anyhow::Result<Sample>,
) -> anyhow::Result<()> {
    let Subject { suite, durability, case, better } = subject;
    if !bench.options.wants(&case) {
        return Ok(());
    }
    Report::progress(&format!("{} / {} / {case}", suite.name(), durability.name()));
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); entrants.len()];
    for _ in 0..bench.options.repetitions() {
        for (entrant, samples) in entrants.iter().zip(&mut samples) {
            samples.push(sample(*entrant).await?);
        }
    }
    let measured = |(entrant, samples): (&Entrant, &Vec<Sample>)| {
        Measured::of(entrant.kind, bench.variant(*entrant), &median(samples))
    };
    let measured = entrants.iter().zip(&samples).map(measured).collect();
    report.add(Row::new(suite, durability, case, better, measured));
    Ok(())
}

/// The median of each figure; durations of all samples together, and what the last of them saw second by second.
fn median(samples: &[Sample]) -> Sample {
    let all = |part: fn(&Sample) -> Option<&mailslot_load::Latencies>| {
        samples.iter().filter_map(part).fold(None, |sum, part| {
            let mut sum = sum.unwrap_or_else(latencies);
            sum.add(part).expect("both have the same bounds");
            Some(sum)
        })
    };
    let middle = |figure: fn(&Sample) -> Option<f64>| {
        let mut figures: Vec<f64> = samples.iter().filter_map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    };
    Sample {
        messages: samples.iter().map(|sample| sample.messages).sum(),
        per_second: middle(|sample| Some(sample.per_second)).unwrap_or_default(),
        cpu_us: middle(|sample| Some(sample.cpu_us)).unwrap_or_default(),
        calls: all(|sample| sample.calls.as_ref()),
        starts: all(|sample| sample.starts.as_ref()),
        per_commit: middle(|sample| sample.per_commit),
        wal_bytes: middle(|sample| sample.wal_bytes),
        server_cpu_us: middle(|sample| sample.server_cpu_us),
        behind: middle(|sample| sample.behind),
        refused: samples.iter().map(|sample| sample.refused).sum(),
        rates: samples.last().map(|sample| sample.rates.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_what_one_disturbed_sample_found() {
        let sample = |messages: u32| Sample {
            messages: messages.into(),
            per_second: messages.into(),
            ..Sample::default()
        };
        let found = median(&[sample(10), sample(1), sample(12)]);
        assert!((found.per_second - 10.0).abs() < f64::EPSILON);
        assert_eq!(found.messages, 23);
    }
}
