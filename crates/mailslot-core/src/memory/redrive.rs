//! Redrives of the memory store.

use super::table::Table;
use crate::id::Seq;
use crate::limits::CHANGE_BATCH_MAX;
use crate::state::Status;
use crate::store::{Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState, redrive_allowance};
use jiff::Timestamp;

impl Table {
    pub(super) fn create_redrive(&mut self, spec: RedriveSpec, now: Timestamp) -> Redrive {
        let id = self.redrives.last_key_value().map_or(1, |(id, _)| id + 1);
        let end = Seq(self.last_seq);
        let redrive = Redrive {
            id: RedriveId(id),
            state: RedriveState::Running,
            total: self.redrivable(&spec, Seq(0), end, usize::MAX).len() as u64,
            spec,
            requeued: 0,
            created_at: now,
            updated_at: now,
        };
        self.redrives.insert(id, (redrive.clone(), Seq(0), end));
        redrive
    }

    /// Matching dead letters after `after` up to `end`.
    fn redrivable(&self, spec: &RedriveSpec, after: Seq, end: Seq, limit: usize) -> Vec<Seq> {
        let mut filter = spec.filter.clone();
        filter.statuses = Some(vec![Status::DeadLettered]);
        let rows = self.rows.range(Seq(after.0 + 1)..).take_while(|(seq, _)| **seq <= end);
        let matching = rows.filter(|(_, row)| filter.matches(&self.record(row)));
        matching.map(|(&seq, _)| seq).take(limit).collect()
    }

    pub(super) fn redrives(&self) -> Vec<Redrive> {
        self.redrives.values().rev().map(|(redrive, ..)| redrive.clone()).collect()
    }

    pub(super) fn act_on_redrive(
        &mut self,
        id: RedriveId,
        action: RedriveAction,
        now: Timestamp,
    ) -> Option<Redrive> {
        let (redrive, ..) = self.redrives.get_mut(&id.0)?;
        let state = redrive.state.on(action);
        if state != redrive.state {
            redrive.state = state;
            redrive.updated_at = now;
        }
        Some(redrive.clone())
    }

    pub(super) fn step_redrives(&mut self, now: Timestamp) -> Vec<Redrive> {
        let running =
            self.redrives.iter().filter(|(_, (redrive, ..))| redrive.state == RedriveState::Running);
        let running: Vec<_> = running.map(|(&id, entry)| (id, entry.clone())).collect();
        let mut moved = Vec::new();
        for (id, (mut redrive, after, end)) in running {
            let first = redrive.updated_at == redrive.created_at && redrive.requeued == 0;
            let allowed =
                redrive_allowance(redrive.spec.rate, redrive.updated_at, now, first, CHANGE_BATCH_MAX);
            if allowed == 0 {
                continue;
            }
            let seqs = self.redrivable(&redrive.spec, after, end, allowed);
            for &seq in &seqs {
                self.requeue(seq, now);
            }
            redrive.requeued += seqs.len() as u64;
            redrive.updated_at = now;
            if seqs.len() < allowed {
                redrive.state = RedriveState::Done;
            }
            let after = seqs.last().copied().unwrap_or(after);
            self.redrives.insert(id, (redrive.clone(), after, end));
            moved.push(redrive);
        }
        moved
    }
}
