//! The accept writer: concurrent accepts share one insert.

use super::error::{AcceptError, BatchError, receipts};
use super::pressure::Pressure;
use crate::coalesce::{Coalescer, Shared, Size};
use crate::stats::StatsSender;
use crate::store::{Store, may_be_one_message};
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{Receipt, StoreError, StoreErrorKind};
use std::fmt;
use std::sync::Arc;

type Answer = Result<Vec<Appended>, Arc<StoreError>>;

/// Stores groups of messages, many at once.
pub(crate) struct AcceptWriter {
    pressure: Option<Pressure>,
    appends: Coalescer<Appends>,
}

impl fmt::Debug for AcceptWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcceptWriter")
    }
}

impl AcceptWriter {
    pub(crate) fn new(store: Arc<dyn Store>, stats: StatsSender, pressure: Option<Pressure>) -> Self {
        Self { pressure, appends: Coalescer::new(Appends { store, stats }) }
    }

    /// Stores a group and gives its receipts. Dropping the future does not undo the accept.
    pub(crate) async fn accept(&self, group: AppendGroup) -> Result<Vec<Receipt>, BatchError> {
        let at_first = |error: AcceptError| BatchError { index: 0, error };
        if let Some(pressure) = &self.pressure {
            pressure.pass().await.map_err(at_first)?;
        }
        match self.appends.ask(group).await {
            Some(Ok(answers)) => receipts(answers),
            Some(Err(error)) => Err(at_first(AcceptError::Store(error))),
            None => {
                let detail =
                    "the accept writer has no running tokio runtime; accept inside of one, with the same key";
                Err(at_first(StoreError::new(StoreErrorKind::Unavailable, "append", detail).into()))
            }
        }
    }
}

struct Appends {
    store: Arc<dyn Store>,
    stats: StatsSender,
}

impl Shared for Appends {
    type Item = AppendGroup;
    type Answer = Answer;

    /// Larger appends gained nothing and lengthen the wait of the first.
    const MAX: Size = Size { parts: 512, bytes: 8 * 1024 * 1024 };

    fn size(&self, group: &AppendGroup) -> Size {
        let bytes = group.messages.iter().map(|message| message.payload.bytes().len()).sum();
        Size { parts: group.messages.len(), bytes }
    }

    fn at_once(&self) -> usize {
        self.store.capabilities().appends_at_once
    }

    async fn call(&self, groups: Vec<AppendGroup>) -> Vec<Answer> {
        let count = groups.len();
        // The copy is needed only where one bad group could spoil the others.
        let again = (count > 1).then(|| groups.clone());
        match (self.store.append(groups).await, again) {
            (Ok(stored), _) => stored.into_iter().map(|stored| Ok(self.counted(stored))).collect(),
            (Err(error), Some(again)) if may_be_one_message(&error) => self.one_by_one(again).await,
            (Err(error), _) => vec![Err(Arc::new(error)); count],
        }
    }
}

impl Appends {
    /// After an append failed for good: finds the group that is to blame, so that the others are stored.
    async fn one_by_one(&self, groups: Vec<AppendGroup>) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(groups.len());
        for group in groups {
            let stored = self.store.append(vec![group]).await;
            answers.push(match stored {
                Ok(mut stored) => Ok(self.counted(stored.pop().unwrap_or_default())),
                Err(error) => Err(Arc::new(error)),
            });
        }
        answers
    }

    /// Counts here and not at the caller, who may have gone away; what is stored counts all the same.
    fn counted(&self, stored: Vec<Appended>) -> Vec<Appended> {
        let receipts = || stored.iter().filter_map(Appended::receipt);
        let new = receipts().filter(|receipt| receipt.is_new()).count() as u64;
        let known = receipts().count() as u64 - new;
        let refused = stored.len() as u64 - new - known;
        self.stats.add(|stats| {
            stats.accepted += new;
            stats.duplicates += known;
            stats.refused_accepts += refused;
        });
        stored
    }
}
