//! The register of leases that this process holds.

use mailslot_core::store::Extended;
use mailslot_core::{CancelCause, Cancellation, LeaseToken, Seq};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Leases with their unsettled messages. A lease leaves with its last message.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    leases: Mutex<HashMap<i64, Held>>,
}

#[derive(Debug)]
struct Held {
    token: LeaseToken,
    /// When the lease ends for certain, by this machine's clock: counted from before the store was asked.
    deadline: Instant,
    members: HashMap<Seq, Cancellation>,
}

impl InFlight {
    fn leases(&self) -> MutexGuard<'_, HashMap<i64, Held>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a claim.
    pub(super) fn add(&self, token: LeaseToken, deadline: Instant, members: HashMap<Seq, Cancellation>) {
        self.leases().insert(token.generation, Held { token, deadline, members });
    }

    /// Forgets a message that is settled.
    pub(super) fn remove(&self, generation: i64, seq: Seq) {
        let mut leases = self.leases();
        let Some(held) = leases.get_mut(&generation) else { return };
        held.members.remove(&seq);
        if held.members.is_empty() {
            leases.remove(&generation);
        }
    }

    pub(super) fn tokens(&self) -> Vec<LeaseToken> {
        self.leases().values().map(|held| held.token).collect()
    }

    /// Applies the store's answers to an extension that was asked for when `deadline` was the new end.
    pub(super) fn extended(
        &self,
        answers: impl IntoIterator<Item = (LeaseToken, Extended)>,
        deadline: Instant,
    ) {
        let mut leases = self.leases();
        for (token, answer) in answers {
            match answer {
                Extended::Held { cancel_requested, .. } => {
                    let Some(held) = leases.get_mut(&token.generation) else { continue };
                    held.deadline = deadline;
                    let asked = cancel_requested.iter().filter_map(|seq| held.members.get(seq));
                    asked.for_each(|cancellation| cancellation.cancel(CancelCause::Requested));
                }
                Extended::Lost => {
                    if let Some(held) = leases.remove(&token.generation) {
                        lose(&held);
                    }
                }
            }
        }
    }

    /// Gives up the leases whose end has passed without an extension.
    pub(super) fn expire(&self, now: Instant) {
        self.leases().retain(|_, held| {
            let holds = held.deadline > now;
            if !holds {
                lose(held);
            }
            holds
        });
    }

    /// Tells every handler to stop.
    pub(super) fn cancel_all(&self, cause: CancelCause) {
        for held in self.leases().values() {
            held.members.values().for_each(|cancellation| cancellation.cancel(cause));
        }
    }
}

fn lose(held: &Held) {
    held.members.values().for_each(|cancellation| cancellation.cancel(CancelCause::LeaseLost));
}
