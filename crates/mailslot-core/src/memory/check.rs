//! The invariants of the memory store. It keeps the state in one place per row, so most hold by construction; these
//! are the ones that its indexes could break.

use super::table::{Place, Table};
use crate::state::Status;
use crate::store::Violation;
use std::collections::{BTreeMap, BTreeSet};

impl Table {
    pub(super) fn check(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut report = |invariant: &'static str, what: String| {
            found.push(Violation {
                invariant,
                found: what,
                cause: "a defect of the memory store",
                repair: "report it; restart the process",
                repairable: false,
            });
        };
        let mut tally: BTreeMap<_, u64> = BTreeMap::new();
        for (seq, row) in &self.rows {
            *tally.entry((row.lane, row.place.status())).or_default() += 1;
            let due = &self.lanes[row.lane].ready[row.class()];
            let ready = matches!(row.place, Place::Ready { due_at } if due.contains(&(due_at, *seq)));
            if ready != matches!(row.place, Place::Ready { .. }) {
                report("one_place", format!("message {seq} is pending and not in its lane"));
            }
            let leased = self.leases.values().filter(|lease| lease.members.contains(seq)).count();
            if leased != usize::from(row.place.status() == Status::Leased) {
                report("one_lease", format!("message {seq} is in {leased} leases"));
            }
            let session = row.session_id().and_then(|id| self.sessions.get(&id));
            let parked = session.is_some_and(|session| session.parked.contains(seq));
            if parked != matches!(row.place, Place::Parked { .. }) {
                report("parked_waits", format!("message {seq} is parked in one index only"));
            }
            let head = session.is_some_and(|session| session.head == *seq);
            let holds = row.session_id().is_some()
                && matches!(row.place.status(), Status::Pending | Status::Leased | Status::Suspended);
            if holds && !head {
                report(
                    "one_in_flight",
                    format!("message {seq} is in flight and not the head of its session"),
                );
            }
        }
        let ready: usize = self.lanes.iter().flat_map(|lane| &lane.ready).map(BTreeSet::len).sum();
        let pending: u64 =
            tally.iter().filter(|((_, status), _)| *status == Status::Pending).map(|(_, n)| n).sum();
        if ready as u64 != pending {
            report("one_place", format!("{ready} messages are in lanes and {pending} are pending"));
        }
        let lanes = self.lanes.iter().enumerate();
        let counted =
            lanes.flat_map(|(number, lane)| lane.tally.iter().map(move |(s, n)| ((number, *s), *n)));
        let counted: BTreeMap<_, _> = counted.filter(|(_, n)| *n > 0).collect();
        if counted != tally {
            report("counts", "the counters do not match the messages".into());
        }
        found
    }
}
