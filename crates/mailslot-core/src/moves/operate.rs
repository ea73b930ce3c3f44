//! What operators do to messages. A change of many messages of one session ends where one after the other would end.

use super::gather::Moves;
use super::slot::Slot;
use crate::outcome::{OutcomeKind, Reason};
use crate::state::Status;
use crate::store::{Change, HandoffResult};

impl Moves {
    /// Applies a change to a message. `true`: it is leased and shall be cancelled, so its worker has to be asked.
    pub fn change(&mut self, change: Change, slot: &Slot, from: Status) -> bool {
        match (change, from) {
            (Change::Cancel, Status::Leased) => return true,
            (Change::Cancel, _) => self.give_up(slot, from, Status::Cancelled),
            (Change::Skip, _) => self.give_up(&slot.with(slot.attempt().requeued()), from, Status::Skipped),
            (Change::Requeue, _) => self.requeue(slot),
            (Change::Purge, _) => self.remove(slot, from),
        }
        false
    }

    fn give_up(&mut self, slot: &Slot, from: Status, to: Status) {
        self.leaving(slot, from);
        self.end(slot, from, to, Some(Reason::Operator), None);
    }

    /// Makes a dead letter pending, with fresh attempts.
    pub fn requeue(&mut self, slot: &Slot) {
        self.leaving(slot, Status::DeadLettered);
        self.record(slot, OutcomeKind::Requeued, Some(Reason::Operator), None);
        self.pend(slot.with(slot.attempt().requeued()), self.now());
    }

    /// Takes a message away that the store deletes, with its history and keys; its session goes on.
    pub fn remove(&mut self, slot: &Slot, from: Status) {
        self.leaving(slot, from);
        self.leave_session(slot, from);
    }

    /// Settles a suspended message from outside.
    pub fn settle_handoff(&mut self, slot: &Slot, result: HandoffResult) {
        let (status, reason, error) = match result {
            HandoffResult::Completed => (Status::Completed, None, None),
            HandoffResult::Failed(error) => (Status::DeadLettered, Some(Reason::HandoffFailed), Some(error)),
        };
        self.leaving(slot, Status::Suspended);
        self.end(slot, Status::Suspended, status, reason, error);
    }
}
