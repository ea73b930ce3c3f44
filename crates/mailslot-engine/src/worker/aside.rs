//! Verdicts that wait for somebody: a transaction that stays open with their session in it.
//!
//! Verdicts are settled together, so one that waits lets the others of its turn wait. Those of a turn that the store gave
//! up because of it come here, out of the way of the next turns, and are tried in halves until those that wait are alone.
//! Such a one is tried again from time to time. Its lease is extended meanwhile as any other, so nobody else gets the
//! message.
//!
//! There is one exchange at a time, beside the turns.

use super::turn::ask_store;
use crate::inbox::Engine;
use futures_util::future::BoxFuture;
use mailslot_core::store::{Exchange, Exchanged};
use mailslot_core::{Settlement, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long it takes until one that waits is tried again, and more if there are many: while it is tried, its lease is
/// locked.
const PAUSE: Duration = Duration::from_millis(500);

/// Settlements and what the store said to them.
pub(super) type Tried = (Vec<Settlement>, Result<Exchanged, StoreError>);

pub(super) struct Aside {
    engine: Arc<Engine>,
    /// What is tried next.
    pieces: VecDeque<Vec<Settlement>>,
    /// Those that wait, in the order of their tries.
    held: VecDeque<Settlement>,
    /// When the first of them is tried.
    try_at: Instant,
    /// What is on its way, and how many it settles.
    trying: Option<(usize, BoxFuture<'static, Tried>)>,
}

impl Aside {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let (pieces, held) = (VecDeque::new(), VecDeque::new());
        Self { engine, pieces, held, try_at: Instant::now(), trying: None }
    }

    /// How many verdicts are here.
    pub(super) fn len(&self) -> usize {
        let trying = self.trying.as_ref().map_or(0, |(count, _)| *count);
        trying + self.held.len() + self.pieces.iter().map(Vec::len).sum::<usize>()
    }

    /// Takes the verdicts of an exchange that the store gave up because somebody holds up some of them.
    pub(super) fn take(&mut self, mut settlements: Vec<Settlement>, error: &StoreError) {
        match settlements.len() {
            0 => {}
            1 => {
                if self.held.is_empty() {
                    tracing::warn!(%error, "a verdict waits for somebody else's transaction; trying until it has ended");
                }
                self.held.extend(settlements);
                let count = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
                self.try_at = Instant::now() + PAUSE / count;
            }
            many => {
                let second = settlements.split_off(many / 2);
                self.pieces.push_front(second);
                self.pieces.push_front(settlements);
            }
        }
    }

    /// Awaits the store's answer to the next try. `None`: nobody waits here. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Tried> {
        if self.trying.is_none() {
            if self.pieces.is_empty() && !self.held.is_empty() {
                sleep_until(self.try_at).await;
            }
            let piece = self.pieces.pop_front().or_else(|| self.held.pop_front().map(|held| vec![held]))?;
            let engine = Arc::clone(&self.engine);
            let exchange = Exchange { settlements: piece.clone(), lease: None };
            let count = piece.len();
            let trying = async move { (piece, ask_store(&engine, exchange).await) };
            self.trying = Some((count, Box::pin(trying)));
        }
        let (_, trying) = self.trying.as_mut()?;
        let tried = trying.await;
        self.trying = None;
        Some(tried)
    }
}
