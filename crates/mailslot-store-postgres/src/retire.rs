//! Retiring partitions: what has ended in a closed one and is past its time is dropped as a whole, which costs next to
//! nothing, where deleting it row by row costs as much as it took to write it.
//!
//! For this a partition whose last messages are nearly past their time waits for them; its other messages are kept for
//! up to [`WAIT_MAX`] longer than the policy says. One with a message that has not ended, or that is kept for longer, does
//! not wait: its messages go one by one. So do dead letters, because each may block a session.
//!
//! Only the retention of all endpoints retires partitions, and only if it limits every end but dead letters.

use crate::connection::Lent;
use crate::error::code_of;
use crate::link::{Param, Session};
use crate::moves;
use crate::operator::{end, plan_anew};
use crate::partition;
use crate::queries;
use crate::store::PostgresStore;
use mailslot_core::store::RetentionPolicy;
use mailslot_core::stored::{Columns as _, code_of_kind, instant, kind_of_code, micros};
use mailslot_core::{OutcomeKind, Status, StoreError};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const OPERATION: &str = "retain";

/// For how much longer a message may be kept so that its partition can be dropped: the two days that a partition of a
/// busy inbox spans at the most, from its first message to the end of its last.
const WAIT_MAX: i64 = 48 * 3600 * 1_000_000;

/// For how long it is remembered which partitions wait: nothing is lost if it is a little longer.
const REMEMBERED: i64 = 10 * 1_000_000;

/// How many pages of the ledger a statement looks at: some hundred thousand records.
const LEDGER_PAGES: usize = 1_000;

/// How often the tables of a partition are asked for. They are locked for a moment only if nobody uses them in it.
const LOCK_TRIES: u32 = 8;

/// How long to wait in between: whoever waits behind us gets a turn.
const LOCK_PAUSE: Duration = Duration::from_millis(250);

/// Which partitions waited when somebody last looked.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Option<Remembered>>);

#[derive(Debug, Clone)]
struct Remembered {
    policy: RetentionPolicy,
    at: i64,
    waiting: Vec<(i64, i64)>,
}

impl Waiting {
    fn recall(&self, policy: &RetentionPolicy, now: i64) -> Option<Vec<(i64, i64)>> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh =
            |found: &&Remembered| found.policy == *policy && (0..REMEMBERED).contains(&(now - found.at));
        remembered.as_ref().filter(fresh).map(|found| found.waiting.clone())
    }

    fn remember(&self, policy: &RetentionPolicy, at: i64, waiting: &[(i64, i64)]) {
        let remembered = Remembered { policy: policy.clone(), at, waiting: waiting.to_vec() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(remembered);
    }
}

/// What retiring did.
#[derive(Debug, Default)]
pub(crate) struct Retired {
    /// How many messages went with their partitions.
    pub(crate) messages: u64,
    /// The partitions that wait, by lower and upper bound.
    pub(crate) waiting: Vec<(i64, i64)>,
}

/// Before which times messages must have ended to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cutoffs {
    completed: i64,
    skipped: i64,
    cancelled: i64,
    /// The beginning of time if they are kept for ever.
    dead_lettered: i64,
}

impl Cutoffs {
    /// `None`: the policy keeps for ever what most messages end as.
    fn of(policy: &RetentionPolicy, now: i64) -> Option<Self> {
        let cutoffs: BTreeMap<_, _> =
            policy.cutoffs(instant(now)).map(|(kind, at)| (code_of_kind(kind), micros(at))).collect();
        let of = |kind| cutoffs.get(&code_of_kind(kind)).copied();
        Some(Self {
            completed: of(OutcomeKind::Completed)?,
            skipped: of(OutcomeKind::Skipped)?,
            cancelled: of(OutcomeKind::Cancelled)?,
            dead_lettered: of(OutcomeKind::DeadLettered).unwrap_or(i64::MIN),
        })
    }
}

/// What is to be done with a closed partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its messages go one by one.
    OneByOne,
    /// They wait.
    Waits,
    /// It can be dropped.
    Drops,
}

/// How many messages stand where.
type Tally = BTreeMap<(i64, Status), i64>;

impl PostgresStore {
    /// Drops closed partitions whose time is over, and says which of the others wait for that.
    pub(crate) async fn retire(&self, policy: &RetentionPolicy) -> Result<Retired, StoreError> {
        let now = self.now_micros().await?;
        let Some(cutoffs) = Cutoffs::of(policy, now) else { return Ok(Retired::default()) };
        if let Some(waiting) = self.shared.waiting.recall(policy, now) {
            return Ok(Retired { messages: 0, waiting });
        }
        let mut retired = Retired::default();
        for (bounds, fate) in self.fates(cutoffs).await? {
            match fate {
                Fate::OneByOne => continue,
                Fate::Waits => {}
                Fate::Drops => {
                    self.forget_records(bounds).await?;
                    self.let_deliveries_go(bounds).await?;
                    if let Some(messages) = self.drop_partition(bounds, cutoffs).await? {
                        tracing::info!(from = bounds.0, before = bounds.1, messages, "dropped a partition");
                        retired.messages += messages;
                        continue;
                    }
                }
            }
            retired.waiting.push(bounds);
        }
        self.shared.waiting.remember(policy, now, &retired.waiting);
        Ok(retired)
    }

    async fn now_micros(&self) -> Result<i64, StoreError> {
        let mut lent = self.shared.free.single(OPERATION).await?;
        let now = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            session.row(queries::CLOCK_READ, vec![self.time()]).await.map(|row| row.int(0))
        };
        end(lent, now).await
    }

    async fn fates(&self, cutoffs: Cutoffs) -> Result<Vec<((i64, i64), Fate)>, StoreError> {
        let mut lent = self.shared.free.begin(OPERATION).await?;
        let fates = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            plan_anew(&mut session).await?;
            fates(&mut session, cutoffs, None).await
        };
        end(lent, fates).await
    }

    /// Forgets what protects the messages of a partition, stretch by stretch of the ledger.
    async fn forget_records(&self, (lower, upper): (i64, i64)) -> Result<(), StoreError> {
        let mut lent = self.shared.free.single(OPERATION).await?;
        let pages = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            session.row(queries::LEDGER_COUNT_PAGES, vec![]).await.map(|row| row.int(0))
        };
        let pages = end(lent, pages).await?;
        for first in (0..pages).step_by(LEDGER_PAGES) {
            let mut lent = self.shared.free.single(OPERATION).await?;
            let forgotten = {
                let mut link = lent.link();
                let mut session = self.shared.session(&mut link, OPERATION);
                let last = first.saturating_add(i64::try_from(LEDGER_PAGES).unwrap_or(i64::MAX));
                let params = [first, last, lower, upper].map(|number| Param::Int(Some(number)));
                session.execute(queries::LEDGER_DELETE_STRETCH, params.into()).await
            };
            end(lent, forgotten).await?;
        }
        Ok(())
    }

    /// Counts the messages of a partition and drops it. `None`: it cannot be dropped now.
    async fn drop_partition(&self, bounds: (i64, i64), cutoffs: Cutoffs) -> Result<Option<u64>, StoreError> {
        let mut lent = self.shared.free.begin(OPERATION).await?;
        let dropped = self.try_to_drop(&mut lent, bounds, cutoffs).await;
        match dropped {
            Ok(Some(messages)) => lent.finish().await.map(|()| Some(messages)),
            Ok(None) => lent.roll_back().await.map(|()| None),
            Err(error) => end(lent, Err(error)).await,
        }
    }

    async fn try_to_drop(
        &self,
        lent: &mut Lent,
        (lower, upper): (i64, i64),
        cutoffs: Cutoffs,
    ) -> Result<Option<u64>, StoreError> {
        let tally = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            plan_anew(&mut session).await?;
            if session.row(queries::DELETION_TAKE, vec![]).await?.int(0) == 0 {
                return Ok(None);
            }
            count_ends(&mut session, lower, upper).await?
        };
        let Some(tally) = tally else { return Ok(None) };
        if !self.lock_tables(lent, lower).await? {
            return Ok(None);
        }
        {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            // A slow accept may have put a message into it after it was closed.
            let fate = fates(&mut session, cutoffs, Some(lower)).await?.pop();
            if fate != Some(((lower, upper), Fate::Drops)) {
                return Ok(None);
            }
            moves::count(&mut session, tally.iter().map(|(place, messages)| (*place, -messages))).await?;
            session.execute(queries::PARTITION_DELETE, vec![Param::Int(Some(lower))]).await?;
        }
        partition::run(lent, &self.shared.options.schema, partition::removal(lower), OPERATION).await?;
        Ok(Some(tally.values().map(|messages| u64::try_from(*messages).unwrap_or_default()).sum()))
    }

    /// Locks the tables of a partition and what they belong to. `false`: somebody uses them all the time.
    async fn lock_tables(&self, lent: &mut Lent, lower: i64) -> Result<bool, StoreError> {
        let schema = &self.shared.options.schema;
        for attempt in 1..=LOCK_TRIES {
            partition::run(lent, schema, "SAVEPOINT unlocked".to_owned(), OPERATION).await?;
            match partition::run(lent, schema, partition::locking(lower), OPERATION).await {
                Ok(()) => return Ok(true),
                Err(error) if is_in_use(&error) => {}
                Err(error) => return Err(error),
            }
            partition::run(lent, schema, "ROLLBACK TO unlocked".to_owned(), OPERATION).await?;
            if attempt < LOCK_TRIES {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
        }
        Ok(false)
    }
}

/// Lock timeout, or a deadlock with somebody who locked in another order.
fn is_in_use(error: &StoreError) -> bool {
    code_of(error).is_some_and(|code| ["55P03", "40P01"].contains(&code.as_str()))
}

async fn fates(
    session: &mut Session<'_>,
    cutoffs: Cutoffs,
    lower: Option<i64>,
) -> Result<Vec<((i64, i64), Fate)>, StoreError> {
    let dead_until = cutoffs.dead_lettered.saturating_add(WAIT_MAX);
    let closed = vec![Param::Int(Some(dead_until)), Param::Int(lower)];
    let mut fates = Vec::new();
    for row in session.rows(queries::PARTITION_FIND_CLOSED, closed).await? {
        let bounds = (row.int(0), row.int(1));
        let times = [bounds.0, bounds.1, cutoffs.completed, cutoffs.skipped, cutoffs.cancelled, WAIT_MAX];
        let young = times.map(|number| Param::Int(Some(number)));
        let young = session.row(queries::PARTITION_FIND_YOUNG, young.into()).await?;
        fates.push((bounds, fate(row.int(2) != 0, young.int(0) != 0, young.int(1) != 0)));
    }
    Ok(fates)
}

fn fate(has_dead_letters: bool, has_young: bool, has_much_younger: bool) -> Fate {
    match (has_much_younger, has_dead_letters || has_young) {
        (true, _) => Fate::OneByOne,
        (false, true) => Fate::Waits,
        (false, false) => Fate::Drops,
    }
}

/// How the messages of a partition ended, counted in stretches. `None`: one has not ended, or as a dead letter.
async fn count_ends(session: &mut Session<'_>, lower: i64, upper: i64) -> Result<Option<Tally>, StoreError> {
    let (mut tally, mut from) = (Tally::new(), lower);
    loop {
        let stretch = vec![Param::Int(Some(from)), Param::Int(Some(upper))];
        let rows = session.rows(queries::PARTITION_COUNT_ENDS, stretch).await?;
        for row in &rows {
            let end = row.integer(2).and_then(kind_of_code).and_then(OutcomeKind::end);
            let Some(status) = end.filter(|status| *status != Status::DeadLettered) else { return Ok(None) };
            *tally.entry((row.int(1), status)).or_default() += row.int(3);
        }
        match rows.first().and_then(|row| row.integer(0)) {
            Some(ends) => from = ends + 1,
            None => return Ok(Some(tally)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_waits_only_for_what_is_nearly_over() {
        assert_eq!(fate(false, false, false), Fate::Drops);
        assert_eq!(fate(false, true, false), Fate::Waits);
        assert_eq!(fate(true, false, false), Fate::Waits);
        assert_eq!(fate(true, true, true), Fate::OneByOne);
    }

    #[test]
    fn a_policy_that_keeps_an_end_for_ever_retires_nothing() {
        let now = 30 * 24 * 3600 * 1_000_000;
        let usual = Cutoffs::of(&RetentionPolicy::default(), now).unwrap();
        assert_eq!((usual.completed, usual.dead_lettered), (23 * 24 * 3600 * 1_000_000, i64::MIN));
        let kept = RetentionPolicy { cancelled: None, ..RetentionPolicy::default() };
        assert_eq!(Cutoffs::of(&kept, now), None);
    }

    #[test]
    fn what_waits_is_remembered_for_a_moment_and_for_the_same_policy() {
        let (waiting, policy) = (Waiting::default(), RetentionPolicy::default());
        waiting.remember(&policy, 1_000, &[(0, 10)]);
        assert_eq!(waiting.recall(&policy, 1_000), Some(vec![(0, 10)]));
        assert_eq!(waiting.recall(&policy, 1_000 + REMEMBERED), None);
        assert_eq!(waiting.recall(&policy, 999), None);
        assert_eq!(waiting.recall(&RetentionPolicy::keep_all(), 1_000), None);
    }
}
