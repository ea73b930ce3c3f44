//! Leasing from the memory store, settling, and taking back.

use super::table::{Lane, Lease, Place, Table};
use crate::contract::Contract;
use crate::id::{Attempt, Seq};
use crate::metadata::KeyPolicy;
use crate::name::EndpointName;
use crate::outcome::{Disposition, Effect, ErrorText, OutcomeKind, Reason, Settlement, effect_of_expiry};
use crate::state::Status;
use crate::store::{
    Candidate, Exchange, Exchanged, ExtendRequest, Extended, LaneRequest, LeaseRequest, LeaseToken, Leased,
    Owner, Pick, Recovered, Settled, pick_candidates,
};
use crate::stored::later;
use jiff::Timestamp;
use std::collections::{BTreeSet, HashMap};

impl Table {
    pub(super) fn exchange(&mut self, exchange: Exchange, now: Timestamp) -> (Exchanged, bool) {
        let settled: Vec<_> =
            exchange.settlements.into_iter().map(|settlement| self.settle(settlement, now)).collect();
        // A settlement may free the next message of a session or return one for others.
        let wake = !settled.is_empty();
        let mut exchanged = Exchanged { settled, ..Exchanged::nothing(now) };
        if let Some(request) = exchange.lease {
            self.lease(&request, now, &mut exchanged);
        }
        (exchanged, wake)
    }

    fn settle(&mut self, settlement: Settlement, now: Timestamp) -> Settled {
        let Settlement { lease, seq, attempt, disposition, error } = settlement;
        if !self.holds(lease, seq, attempt) {
            return Settled::LeaseLost;
        }
        let effect = Disposition::effect(&disposition, self.row(seq).cancel_requested);
        self.apply(seq, effect, error, now);
        Settled::Applied(self.row(seq).place.status())
    }

    fn holds(&self, token: LeaseToken, seq: Seq, attempt: Attempt) -> bool {
        let held = self
            .leases
            .get(&token.generation)
            .is_some_and(|lease| lease.owner.session() == token.owner && lease.members.contains(&seq));
        held && self.rows.get(&seq).is_some_and(|row| row.attempt == attempt)
    }

    pub(super) fn apply(&mut self, seq: Seq, effect: Effect, error: Option<ErrorText>, now: Timestamp) {
        match effect {
            Effect::Return { after, give_back, record } => {
                let row = self.row_mut(seq);
                if let Some((kind, reason)) = record {
                    row.record(kind, Some(reason), error, now);
                }
                if give_back {
                    row.attempt = row.attempt.released();
                }
                self.place(seq, Place::Ready { due_at: later(now, after) });
            }
            Effect::Suspend(handoff) => {
                self.row_mut(seq).record(OutcomeKind::Suspended, None, error, now);
                self.place(seq, Place::Suspended(handoff));
            }
            Effect::End { status, reason } => self.end(seq, status, reason, error, now),
        }
    }

    fn lease(&mut self, request: &LeaseRequest, now: Timestamp, exchanged: &mut Exchanged) {
        let due_until = request.due_by(now);
        let mut attempts_max: HashMap<(&EndpointName, &Contract), u32> = HashMap::new();
        for lane in &request.lanes {
            attempts_max.insert((&lane.endpoint, &lane.contract), lane.attempts_max);
        }
        // Exhausted messages make room for others, so the claim goes on until it is full or nothing is due.
        while exchanged.leased.len() < request.limit {
            let wanted = request.limit - exchanged.leased.len();
            let pick = self.pick(request, due_until, wanted);
            exchanged.held_back = pick.held_back;
            if pick.candidates.is_empty() {
                break;
            }
            for Candidate { seq, .. } in pick.candidates {
                let row = self.row(seq);
                let lane = (&row.envelope.endpoint, &row.envelope.contract);
                if row.attempt.number >= attempts_max[&lane] {
                    exchanged.refused.push(row.envelope.id);
                    self.end(seq, Status::DeadLettered, Some(Reason::Crashed), None, now);
                } else {
                    self.lease_one(seq, request, now, exchanged);
                }
            }
        }
        if exchanged.leased.len() < request.limit {
            exchanged.next_due = self.next_due(&request.lanes, now);
        }
    }

    fn pick(&self, request: &LeaseRequest, due_until: Timestamp, wanted: usize) -> Pick {
        let holds_suspect = self.holds_suspect(&request.owner);
        let mut window = wanted;
        loop {
            let (candidates, more) = self.candidates(request, due_until, window);
            let pick = pick_candidates(candidates, wanted, holds_suspect);
            match pick.wider_window(wanted, window, more) {
                Some(wider) => window = wider,
                None => return pick,
            }
        }
    }

    /// At most `window` due messages of each lane and class, and whether there may be more.
    fn candidates(
        &self,
        request: &LeaseRequest,
        due_until: Timestamp,
        window: usize,
    ) -> (Vec<Candidate>, bool) {
        let mut candidates = Vec::new();
        let mut more = false;
        for lane in &request.lanes {
            let Some(stored) = self.lane(lane) else { continue };
            for (due, &priority) in stored.ready.iter().zip(&crate::Priority::ALL) {
                let of_tenant =
                    |seq: &Seq| request.tenant.is_none() || self.row(*seq).envelope.tenant == request.tenant;
                let due = due
                    .range(..=(due_until, Seq(i64::MAX)))
                    .filter(|(_, seq)| of_tenant(seq))
                    .take(window)
                    .map(|&(due_at, seq)| {
                        let row = self.row(seq);
                        let suspect = row.attempt.number < lane.attempts_max && row.is_suspect();
                        Candidate { seq, priority, due_at, suspect }
                    });
                let before = candidates.len();
                candidates.extend(due);
                more |= candidates.len() - before == window;
            }
        }
        (candidates, more)
    }

    fn holds_suspect(&self, owner: &Owner) -> bool {
        let held = self.leases.values().filter(|lease| lease.owner.session() == owner.session());
        held.flat_map(|lease| &lease.members).any(|&seq| self.row(seq).is_suspect())
    }

    fn lease_one(&mut self, seq: Seq, request: &LeaseRequest, now: Timestamp, exchanged: &mut Exchanged) {
        if exchanged.leased.is_empty() {
            self.last_generation += 1;
            let until = later(now, request.duration);
            let lease = Lease { owner: request.owner.clone(), until, members: BTreeSet::new() };
            self.leases.insert(self.last_generation, lease);
            exchanged.until = Some(until);
        }
        let generation = self.last_generation;
        let Place::Ready { due_at } = self.row(seq).place else { return };
        self.place(seq, Place::Leased { generation });
        if let Some(lease) = self.leases.get_mut(&generation) {
            lease.members.insert(seq);
        }
        if self.row(seq).key_policy == KeyPolicy::UntilStarted {
            self.free_key(seq);
        }
        let row = self.row_mut(seq);
        row.attempt = row.attempt.leased();
        let lease = LeaseToken { owner: request.owner.session(), generation };
        exchanged.leased.push(Leased { envelope: row.envelope.clone(), attempt: row.attempt, lease, due_at });
    }

    fn lane(&self, lane: &LaneRequest) -> Option<&Lane> {
        let number = self.lane_numbers.get(&(lane.endpoint.clone(), lane.contract.clone()))?;
        self.lanes.get(*number)
    }

    fn next_due(&self, lanes: &[LaneRequest], now: Timestamp) -> Option<Timestamp> {
        let due = lanes.iter().filter_map(|lane| self.lane(lane)).flat_map(|lane| &lane.ready);
        due.filter_map(|due| due.range((now, Seq(i64::MAX))..).next()).map(|&(due_at, _)| due_at).min()
    }

    pub(super) fn extend(&mut self, request: &ExtendRequest, now: Timestamp) -> Vec<Extended> {
        let until = later(now, request.duration);
        let mut answers = Vec::with_capacity(request.leases.len());
        for token in &request.leases {
            let lease =
                self.leases.get_mut(&token.generation).filter(|lease| lease.owner.session() == token.owner);
            let Some(lease) = lease else {
                answers.push(Extended::Lost);
                continue;
            };
            lease.until = until;
            let members = lease.members.clone();
            let cancel_requested =
                members.into_iter().filter(|&seq| self.row(seq).cancel_requested).collect();
            answers.push(Extended::Held { until, cancel_requested });
        }
        answers
    }

    pub(super) fn recover(&mut self, limit: usize, now: Timestamp) -> Recovered {
        let mut over: Vec<_> = self.leases.iter().filter(|(_, lease)| lease.until <= now).collect();
        over.sort_by_key(|(generation, lease)| (lease.until, **generation));
        let over: Vec<_> = over.into_iter().take(limit).map(|(_, lease)| lease.members.clone()).collect();
        let mut recovered = Recovered { leases: over.len() as u64, ..Recovered::default() };
        for seq in over.into_iter().flatten() {
            let effect = effect_of_expiry(self.row(seq).cancel_requested);
            match effect {
                Effect::End { .. } => recovered.cancelled += 1,
                Effect::Return { .. } | Effect::Suspend(_) => recovered.returned += 1,
            }
            self.apply(seq, effect, None, now);
        }
        recovered
    }
}
