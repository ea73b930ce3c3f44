//! Retention: which messages ended long enough ago.
//!
//! Only a BRIN index knows when messages ended: it is told nothing by the statements that settle, which an ordered index
//! would slow down, and it gives what it finds in no order. As long as most of what is old enough goes, one look finds
//! it. Where much is kept (dead letters, other endpoints) the search walks through time in stretches of a bounded
//! number of outcomes, and goes on where it was when it is called again.

use crate::change::delete_ended;
use crate::link::{Param, Session};
use crate::operator::{Alteration, Outcome};
use crate::queries;
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::moves::Moves;
use mailslot_core::store::{Changed, RetentionPolicy};
use mailslot_core::stored::{Columns as _, code_of_kind, micros};
use mailslot_core::{EndpointName, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// Most stretches of one call: together they take about a second.
const STRETCHES_MAX: usize = 32;

/// The first stretch of a walk, in microseconds; the next ones follow what is found.
const WIDTH: i64 = 60 * 1_000_000;

/// How far before its end a walk goes on: longer than a transaction takes from its time to its commit.
const LAG: i64 = 600 * 1_000_000;

/// After what time a walk begins anew, for what a corrected clock has put behind it.
const AGAIN: i64 = 24 * 3600 * 1_000_000;

/// How far each walk has come.
#[derive(Debug, Default)]
pub(crate) struct Walks(Mutex<HashMap<Key, Walk>>);

/// The endpoint, and the kinds of ends that are kept for the same time.
type Key = (Option<EndpointName>, Vec<i64>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Walk {
    from: i64,
    width: i64,
    began: i64,
}

impl Walks {
    fn get(&self, key: &Key) -> Option<Walk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    fn set(&self, key: Key, walk: Walk) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, walk);
    }
}

impl Walk {
    fn is_current(self, now: i64) -> bool {
        (self.began..self.began.saturating_add(AGAIN)).contains(&now)
    }

    fn until(self, cutoff: i64) -> i64 {
        self.from.saturating_add(self.width).min(cutoff)
    }

    /// Looks at less next time. `false`: less there is not.
    fn narrow(&mut self) -> bool {
        let could = self.width > 1;
        self.width = (self.width / 4).max(1);
        could
    }

    /// Goes on behind a stretch that it has seen all of.
    fn pass(&mut self, until: i64, cutoff: i64) {
        self.from = if until < cutoff { until } else { cutoff.saturating_sub(LAG).max(self.from) };
        self.width = self.width.saturating_mul(2);
    }
}

/// Deletes at most `limit` messages whose time is over.
pub(crate) struct Retain<'r> {
    pub(crate) walks: &'r Walks,
    /// Partitions that wait to be dropped, by lower and upper bound.
    pub(crate) waiting: Vec<(i64, i64)>,
    pub(crate) endpoint: Option<&'r EndpointName>,
    pub(crate) policy: &'r RetentionPolicy,
    pub(crate) limit: usize,
}

#[async_trait]
impl Alteration for Retain<'_> {
    const OPERATION: &'static str = "retain";

    type Answer = Changed;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Changed> {
        let Self { walks, waiting, endpoint, policy, limit } = self;
        if session.row(queries::DELETION_SHARE, vec![]).await?.int(0) == 0 {
            return Ok((Changed::default(), Vec::new()));
        }
        let seqs = find(session, walks, *endpoint, policy, waiting, (*limit, moves.now())).await?;
        delete_ended(session, &seqs, moves).await
    }
}

/// What goes: ends of these kinds before this time.
struct Search<'s> {
    endpoint: Option<&'s EndpointName>,
    kinds: Vec<i64>,
    cutoff: i64,
    /// Partitions that wait to be dropped, by lower and upper bound.
    waiting: &'s [(i64, i64)],
}

/// What a look found, and whether it saw all outcomes of its time.
struct Look {
    seqs: Vec<i64>,
    saw_all: bool,
}

/// At most `limit` messages whose time is over, but for those in partitions that wait.
async fn find(
    session: &mut Session<'_>,
    walks: &Walks,
    endpoint: Option<&EndpointName>,
    policy: &RetentionPolicy,
    waiting: &[(i64, i64)],
    (limit, now): (usize, Timestamp),
) -> Result<Vec<i64>, StoreError> {
    let mut kinds_by_cutoff: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (kind, cutoff) in policy.cutoffs(now) {
        kinds_by_cutoff.entry(micros(cutoff)).or_default().push(code_of_kind(kind));
    }
    let mut seqs = BTreeSet::new();
    for (cutoff, kinds) in kinds_by_cutoff {
        let search = Search { endpoint, kinds, cutoff, waiting };
        search.run(session, walks, (limit, micros(now)), &mut seqs).await?;
    }
    Ok(seqs.into_iter().collect())
}

impl Search<'_> {
    async fn run(
        &self,
        session: &mut Session<'_>,
        walks: &Walks,
        (limit, now): (usize, i64),
        seqs: &mut BTreeSet<i64>,
    ) -> Result<(), StoreError> {
        let first = self.look(session, (i64::MIN, self.cutoff), limit - seqs.len()).await?;
        seqs.extend(first.seqs);
        if first.saw_all || seqs.len() >= limit {
            return Ok(());
        }
        let key = (self.endpoint.cloned(), self.kinds.clone());
        let mut walk = match walks.get(&key).filter(|walk| walk.is_current(now)) {
            Some(walk) => walk,
            None => Walk { from: oldest(session).await?, width: WIDTH, began: now },
        };
        for _ in 0..STRETCHES_MAX {
            let until = walk.until(self.cutoff);
            let look = self.look(session, (walk.from, until), limit).await?;
            if !look.saw_all && walk.narrow() {
                continue;
            }
            seqs.extend(look.seqs.into_iter().take(limit - seqs.len()));
            if seqs.len() >= limit {
                break;
            }
            walk.pass(until, self.cutoff);
            if until >= self.cutoff {
                break;
            }
        }
        walks.set(key, walk);
        Ok(())
    }

    async fn look(
        &self,
        session: &mut Session<'_>,
        (from, before): (i64, i64),
        limit: usize,
    ) -> Result<Look, StoreError> {
        let params = vec![
            Param::ints(self.kinds.iter().copied()),
            Param::optional_text(self.endpoint.map(AsRef::as_ref)),
            Param::Int(Some(from)),
            Param::Int(Some(before)),
            Param::Int(i64::try_from(limit).ok()),
            Param::ints(self.waiting.iter().map(|(lower, _)| *lower)),
            Param::ints(self.waiting.iter().map(|(_, upper)| *upper)),
        ];
        let rows = session.rows(queries::OUTCOME_FIND_EXPIRED, params).await?;
        let saw_all = rows.first().is_some_and(|row| row.int(0) != 0);
        Ok(Look { seqs: rows.iter().filter_map(|row| row.integer(1)).collect(), saw_all })
    }
}

async fn oldest(session: &mut Session<'_>) -> Result<i64, StoreError> {
    Ok(session.row(queries::MESSAGE_FIND_OLDEST_TIME, vec![]).await?.int(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Walk = Walk { from: 1_000, width: 100, began: 5_000 };

    #[test]
    fn a_walk_follows_what_it_finds() {
        let mut walk = START;
        assert_eq!(walk.until(10_000), 1_100);
        walk.pass(1_100, 10_000);
        assert_eq!((walk.from, walk.width, walk.until(1_200)), (1_100, 200, 1_200));
        assert!(walk.narrow());
        assert_eq!(walk.width, 50);
        walk.width = 1;
        assert!(!walk.narrow());
    }

    #[test]
    fn a_walk_that_is_through_looks_again_at_what_may_commit_late() {
        let mut walk = START;
        walk.pass(10 * LAG, 10 * LAG);
        assert_eq!(walk.from, 9 * LAG);
        let mut young = START;
        young.pass(2_000, 2_000);
        assert_eq!(young.from, START.from);
    }

    #[test]
    fn a_walk_begins_anew_after_a_day_and_when_the_clock_went_back() {
        assert!(START.is_current(5_000) && START.is_current(4_999 + AGAIN));
        assert!(!START.is_current(4_999) && !START.is_current(5_000 + AGAIN));
    }
}
