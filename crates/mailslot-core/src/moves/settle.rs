//! Settling under the fence, and taking back what is over.

use super::gather::Moves;
use super::slot::Slot;
use crate::id::Seq;
use crate::outcome::{Settlement, effect_of_expiry};
use crate::state::Status;
use crate::store::{ExtendRequest, Extended, Recovered, Settled};
use jiff::Timestamp;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// A leased message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The message.
    pub slot: Slot,
    /// The generation of its lease.
    pub lease: i64,
    /// Whether someone asked to cancel it.
    pub cancel_requested: bool,
}

/// What is there of the leases and messages that settlements name: all that decides whether one holds.
#[derive(Debug, Default)]
pub struct Held {
    owners: HashMap<i64, Uuid>,
    members: HashMap<Seq, Member>,
}

impl Held {
    /// Leases by generation with their owners, and leased messages.
    pub fn new(
        owners: impl IntoIterator<Item = (i64, Uuid)>,
        members: impl IntoIterator<Item = Member>,
    ) -> Self {
        let members = members.into_iter().map(|member| (Seq(member.slot.seq), member));
        Self { owners: owners.into_iter().collect(), members: members.collect() }
    }

    fn holds(&self, settlement: &Settlement) -> bool {
        let Settlement { lease, seq, attempt, .. } = settlement;
        self.owners.get(&lease.generation) == Some(&lease.owner)
            && self
                .members
                .get(seq)
                .is_some_and(|member| member.lease == lease.generation && member.slot.attempt() == *attempt)
    }

    /// Settles what the leases still hold. Returns one answer for each settlement, and the leases that lost members:
    /// those without any go.
    pub fn settle(
        &mut self,
        settlements: Vec<Settlement>,
        moves: &mut Moves,
    ) -> (Vec<Settled>, BTreeSet<i64>) {
        let mut leases = BTreeSet::new();
        let settle = |settlement: Settlement| {
            if !self.holds(&settlement) {
                return Settled::LeaseLost;
            }
            // Taken out, so that a second settlement of the same attempt finds nothing.
            let Some(member) = self.members.remove(&settlement.seq) else { return Settled::LeaseLost };
            leases.insert(member.lease);
            let effect = settlement.disposition.effect(member.cancel_requested);
            Settled::Applied(moves.apply(member.slot, effect, settlement.error))
        };
        (settlements.into_iter().map(settle).collect(), leases)
    }
}

impl Moves {
    /// Takes back a message whose lease ran out or is gone.
    pub fn take_back(&mut self, member: &Member, recovered: &mut Recovered) {
        match self.apply(member.slot, effect_of_expiry(member.cancel_requested), None) {
            Status::Cancelled => recovered.cancelled += 1,
            _ => recovered.returned += 1,
        }
    }
}

impl ExtendRequest {
    /// The answers, once the leases that are held end at `until`: `owners` are those of the extended leases, `cancels`
    /// the messages in them that someone asked to cancel.
    pub fn answers(
        &self,
        until: Timestamp,
        owners: &HashMap<i64, Uuid>,
        cancels: &[(i64, Seq)],
    ) -> Vec<Extended> {
        let answer = |token: &crate::store::LeaseToken| {
            // A generation belongs to one owner; the same one under another owner's name is lost to that one.
            if owners.get(&token.generation) != Some(&token.owner) {
                return Extended::Lost;
            }
            let of_lease = cancels.iter().filter(|(lease, _)| *lease == token.generation);
            Extended::Held { until, cancel_requested: of_lease.map(|(_, seq)| *seq).collect() }
        };
        self.leases.iter().map(answer).collect()
    }
}
