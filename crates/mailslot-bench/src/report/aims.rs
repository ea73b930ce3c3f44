//! What we hold ourselves to, as far as a run measured it: ratios between neighbours, no rates.

use super::{Measured, Report};
use crate::contender::Kind;
use crate::options::{Durability, Suite};
use mailslot_load::float;
use serde::Serialize;

/// One aim with what was found.
#[derive(Debug, Serialize)]
pub(super) struct Aim {
    pub(super) what: String,
    pub(super) bound: Bound,
    pub(super) found: f64,
    pub(super) met: bool,
}

/// What a figure is to be.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

impl Bound {
    fn holds(self, found: f64) -> bool {
        match self {
            AtLeast(least) => found >= least,
            AtMost(most) => found <= most,
        }
    }
}

/// All aims on PostgreSQL that the run measured.
pub(super) fn of(report: &Report) -> Vec<Aim> {
    let found = Found { report };
    [found.accept(), found.execute(), found.claims(), found.both(), found.latency()]
        .into_iter()
        .flatten()
        .filter_map(|(what, bound, found)| {
            let found = found.filter(|found| found.is_finite())?;
            Some(Aim { what, bound, found, met: bound.holds(found) })
        })
        .collect()
}

type Figure = (String, Bound, Option<f64>);

struct Found<'a> {
    report: &'a Report,
}

impl Found<'_> {
    /// What was measured of one kind, in a case that begins so.
    fn get(&self, suite: Suite, case: &str, kind: Kind, variant: &str) -> Option<&Measured> {
        let mut rows = self.report.rows.iter();
        let row = rows.find(|row| {
            row.suite == suite && row.store == Durability::Postgres && row.case.starts_with(case)
        })?;
        row.measured.iter().find(|measured| {
            let name = measured.variant.as_deref().unwrap_or_default();
            measured.kind == kind
                && if kind == Kind::Peer { name == variant } else { name.starts_with(variant) }
        })
    }

    /// A figure of ours divided by the same of another one.
    fn over(
        &self,
        suite: Suite,
        case: &str,
        ours: &str,
        other: (Kind, &str),
        figure: impl Fn(&Measured) -> Option<f64>,
    ) -> Option<f64> {
        let ours = figure(self.get(suite, case, Kind::Mailslot, ours)?)?;
        Some(ours / figure(self.get(suite, case, other.0, other.1)?)?)
    }

    fn accept(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (callers, least) in [(64, 3.0), (256, 4.5), (1_024, 7.0)] {
            let case = format!("{callers} callers, keyed");
            let over = |kind| self.over(Suite::Accept, &case, "", (kind, ""), rate);
            figures.push((
                format!("accept, {callers} callers: rate over one insert each"),
                AtLeast(least),
                over(Kind::OneByOne),
            ));
            figures.push((
                format!("accept, {callers} callers: rate over raw"),
                AtLeast(0.8),
                over(Kind::Raw),
            ));
        }
        let one =
            self.over(Suite::Accept, "1 callers, keyed", "", (Kind::OneByOne, ""), |found| found.p50_ms);
        figures.push(("accept, 1 caller: p50 over one raw insert".into(), AtMost(1.15), one));
        for (peer, least) in [("apalis", 8.0), ("pgmq", 3.0)] {
            let ratio = self.over(Suite::Accept, "32 callers, keyed", "", (Kind::Peer, peer), rate);
            figures.push((format!("accept, 32 callers: rate over {peer}"), AtLeast(least), ratio));
        }
        figures
    }

    fn execute(&self) -> Vec<Figure> {
        let case = "drain, no-op, concurrency 64";
        let raw = self.over(Suite::Execute, case, "", (Kind::Raw, "4 x 100"), rate);
        let peer = |name| self.over(Suite::Execute, case, "", (Kind::Peer, name), rate);
        let four = self.over(Suite::Processes, "drain", "4 processes", (Kind::Mailslot, "1 process"), rate);
        vec![
            ("execute, no-op: rate over raw".into(), AtLeast(0.75), raw),
            (
                "execute, no-op: rate over graphile-worker (Rust)".into(),
                AtLeast(1.1),
                peer("graphile-worker-rs"),
            ),
            (
                "execute, no-op: rate over graphile-worker (Node)".into(),
                AtLeast(1.1),
                peer("graphile-worker"),
            ),
            ("execute: four processes over one".into(), AtLeast(1.0), four),
        ]
    }

    fn claims(&self) -> Vec<Figure> {
        let cost = |suite, case, ours, other| {
            self.over(suite, case, ours, (Kind::Mailslot, other), |found| Some(1.0 / found.per_second))
        };
        let snapshot = cost(Suite::Snapshot, "settle", "snapshot held", "nothing held");
        let beside = |case: &str| {
            let mut rows = self.report.rows.iter();
            let row = rows.find(|row| row.suite == Suite::Backlog && row.case.ends_with(case))?;
            let [long, short, ..] = &row.measured[..] else { return None };
            Some(short.per_second / long.per_second)
        };
        vec![
            ("claim: cost with an old snapshot held, over without".into(), AtMost(1.2), snapshot),
            ("claim: cost before a long backlog, over a short one".into(), AtMost(1.2), beside(" due")),
            (
                "claim: cost beside far-future messages, over few".into(),
                AtMost(1.2),
                beside(" due in a year"),
            ),
        ]
    }

    fn both(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (case, name) in [
            ("256 callers, one worker", "256 callers"),
            ("256 callers, one worker, old snapshot held", "256 callers, old snapshot held"),
        ] {
            // The first case's name begins the second one's.
            let row = self.report.rows.iter().find(|row| {
                row.suite == Suite::Both && row.store == Durability::Postgres && row.case == case
            });
            let Some([ours, raw]) = row.map(|row| &row.measured[..]) else { continue };
            let p99 = ours.p99_ms.zip(raw.p99_ms).map(|(ours, raw)| ours / raw);
            figures.push((
                format!("both, {name}: rate over raw"),
                AtLeast(0.7),
                Some(ours.per_second / raw.per_second),
            ));
            figures.push((format!("both, {name}: start p99 over raw"), AtMost(3.0), p99));
            figures.push((
                format!("both, {name}: last third over first third"),
                AtLeast(0.9),
                flatness(&ours.rates),
            ));
        }
        let many = self.get(Suite::Both, "1024 callers, one worker", Kind::Mailslot, "waits");
        figures.push((
            "both, 1024 callers, accepts wait at 250 ms: start p99, ms".into(),
            AtMost(500.0),
            many.and_then(|many| many.p99_ms),
        ));
        let no_key = self.get(Suite::Both, "64 callers, one worker, no key", Kind::Mailslot, "");
        figures.push((
            "both, no key: bytes of log for each message".into(),
            AtMost(1_300.0),
            no_key.and_then(|found| found.wal_bytes),
        ));
        figures
    }

    fn latency(&self) -> Vec<Figure> {
        let here = self.get(Suite::Latency, "idle, 20/s", Kind::Mailslot, "");
        let over = here.and_then(|found| Some(found.p50_ms? - found.accept_p50_ms?));
        let apart = self.get(Suite::Latency, "idle, 20/s, two processes", Kind::Mailslot, "");
        vec![
            ("latency, idle: start p50 after the accept returned, ms".into(), AtMost(1.0), over),
            (
                "latency, idle, two processes: start p50, ms".into(),
                AtMost(5.0),
                apart.and_then(|found| found.p50_ms),
            ),
            (
                "latency, idle, two processes: start p99, ms".into(),
                AtMost(30.0),
                apart.and_then(|found| found.p99_ms),
            ),
        ]
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a figure as the others, which may be absent")]
fn rate(measured: &Measured) -> Option<f64> {
    Some(measured.per_second)
}

/// The mean of the last third of a run over that of the first.
fn flatness(rates: &[f64]) -> Option<f64> {
    let third = rates.len() / 3;
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / float(rates.len() as u64);
    (third > 0).then(|| mean(&rates[rates.len() - third..]) / mean(&rates[..third]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_slows_down_is_not_flat() {
        assert_eq!(flatness(&[4.0, 4.0]), None);
        assert_eq!(flatness(&[4.0, 4.0, 4.0]), Some(1.0));
        assert_eq!(flatness(&[4.0, 4.0, 9.0, 9.0, 2.0, 2.0]), Some(0.5));
    }

    #[test]
    fn a_bound_holds_at_its_value() {
        assert!(AtLeast(1.0).holds(1.0) && !AtLeast(1.0).holds(0.9));
        assert!(AtMost(1.0).holds(1.0) && !AtMost(1.0).holds(1.1));
    }
}
