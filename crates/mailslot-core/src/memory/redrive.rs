//! Redrives of the memory store.

use super::table::Table;
use crate::id::Seq;
use crate::state::Status;
use crate::store::{Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState, RedriveWalk};
use jiff::Timestamp;

impl Table {
    pub(super) fn create_redrive(&mut self, spec: RedriveSpec, now: Timestamp) -> Redrive {
        let id = self.redrives.last_key_value().map_or(1, |(id, _)| id + 1);
        let total = self.redrivable(&spec, (0, self.last_seq), usize::MAX).len() as u64;
        let walk = RedriveWalk::new(RedriveId(id), spec, total, self.last_seq, now);
        let redrive = walk.redrive.clone();
        self.redrives.insert(id, walk);
        redrive
    }

    /// Matching dead letters after the first place and up to the last.
    fn redrivable(&self, spec: &RedriveSpec, (after, last): (i64, i64), limit: usize) -> Vec<i64> {
        let mut filter = spec.filter.clone();
        filter.statuses = Some(vec![Status::DeadLettered]);
        let rows = self.rows.range(Seq(after + 1)..).take_while(|(seq, _)| seq.0 <= last);
        let matching = rows.filter(|(_, row)| filter.matches(&self.record(row)));
        matching.map(|(seq, _)| seq.0).take(limit).collect()
    }

    pub(super) fn redrives(&self) -> Vec<Redrive> {
        self.redrives.values().rev().map(|walk| walk.redrive.clone()).collect()
    }

    pub(super) fn act_on_redrive(
        &mut self,
        id: RedriveId,
        action: RedriveAction,
        now: Timestamp,
    ) -> Option<Redrive> {
        let walk = self.redrives.get_mut(&id.0)?;
        walk.act(action, now);
        Some(walk.redrive.clone())
    }

    pub(super) fn step_redrives(&mut self, now: Timestamp) -> Vec<Redrive> {
        let running = self.redrives.iter().filter(|(_, walk)| walk.redrive.state == RedriveState::Running);
        let running: Vec<_> = running.map(|(&id, walk)| (id, walk.clone())).collect();
        let mut moved = Vec::new();
        for (id, mut walk) in running {
            let allowed = walk.allowance(now);
            if allowed == 0 {
                continue;
            }
            let seqs = self.redrivable(&walk.redrive.spec, walk.stretch(), allowed);
            for &seq in &seqs {
                self.requeue(Seq(seq), now);
            }
            walk.advance(&seqs, allowed, now);
            moved.push(walk.redrive.clone());
            self.redrives.insert(id, walk);
        }
        moved
    }
}
