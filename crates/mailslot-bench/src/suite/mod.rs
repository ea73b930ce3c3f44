//! The suites: each makes its cases, runs ours and the references in turn, and adds rows to the report.

mod accept;
mod both;
mod execute;
mod latency;
mod store;

use crate::contender::{Kind, Setup};
use crate::measure::{Sample, latencies};
use crate::options::{Durability, Options, Suite};
use crate::report::{Better, Measured, Report, Row};
use std::path::Path;
use tempfile::TempDir;

/// Runs what was asked for.
pub(crate) async fn run(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    for suite in options.suites() {
        match suite {
            Suite::Accept => accept::run(options, report).await?,
            Suite::Store => store::run(options, report).await?,
            Suite::Execute => execute::run(options, report).await?,
            Suite::Latency => latency::run(options, report).await?,
            Suite::Both => both::run(options, report).await?,
        }
    }
    Ok(())
}

/// A fresh place for one sample's files; it goes with the value.
struct Place(TempDir);

impl Place {
    fn new(options: &Options) -> anyhow::Result<Self> {
        let mut place = tempfile::Builder::new();
        place.prefix("mailslot-bench-");
        Ok(Self(match &options.dir {
            Some(dir) => place.tempdir_in(dir)?,
            None => place.tempdir()?,
        }))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn setup(&self, durability: Durability) -> Setup {
        Setup { durability, path: self.path().join("bench.db"), concurrency: 16, handler: None }
    }
}

/// What a row is about.
struct Subject {
    suite: Suite,
    durability: Durability,
    case: String,
    better: Better,
}

/// Samples every kind once in each round, so that a disturbance of the machine hits all of them, and makes a row of
/// the medians. The first kind is ours.
async fn interleave(
    options: &Options,
    report: &mut Report,
    subject: Subject,
    kinds: &[Kind],
    mut sample: impl AsyncFnMut(Kind) -> anyhow::Result<Sample>,
) -> anyhow::Result<()> {
    let Subject { suite, durability, case, better } = subject;
    if !options.wants(&case) {
        return Ok(());
    }
    Report::progress(&format!("{} / {} / {case}", suite.name(), durability.name()));
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); kinds.len()];
    for _ in 0..options.repetitions() {
        for (kind, samples) in kinds.iter().zip(&mut samples) {
            samples.push(sample(*kind).await?);
        }
    }
    let measured: Vec<_> =
        kinds.iter().zip(&samples).map(|(kind, samples)| Measured::of(*kind, &median(samples))).collect();
    report.add(Row::new(suite, durability, case, better, measured));
    Ok(())
}

/// The median of each figure; durations of all samples together.
fn median(samples: &[Sample]) -> Sample {
    let all = samples.iter().filter_map(|sample| sample.latencies.as_ref()).fold(None, |sum, part| {
        let mut sum = sum.unwrap_or_else(latencies);
        sum.add(part).expect("both have the same bounds");
        Some(sum)
    });
    let middle = |figure: fn(&Sample) -> Option<f64>| {
        let mut figures: Vec<f64> = samples.iter().filter_map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    };
    Sample {
        messages: samples.iter().map(|sample| sample.messages).sum(),
        per_second: middle(|sample| Some(sample.per_second)).unwrap_or_default(),
        cpu_us: middle(|sample| Some(sample.cpu_us)).unwrap_or_default(),
        latencies: all,
        per_commit: middle(|sample| sample.per_commit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_median_ignores_what_one_disturbed_sample_found() {
        let sample = |messages| Sample::of(messages, 1, Duration::from_secs(1), Duration::ZERO);
        let found = median(&[sample(10), sample(1), sample(12)]);
        assert!((found.per_second - 10.0).abs() < f64::EPSILON);
        assert_eq!(found.messages, 23);
    }
}
