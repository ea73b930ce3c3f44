//! Claiming: which due messages a store looks at, and what becomes of those that are taken.

use super::gather::Moves;
use super::slot::Slot;
use crate::id::{MessageId, Seq};
use crate::limits::SUSPECT_AFTER;
use crate::message::Envelope;
use crate::metadata::Priority;
use crate::outcome::Reason;
use crate::state::Status;
use crate::store::{Candidate, LeaseRequest, Pick, pick_candidates};
use crate::stored::{Read, UNTIL_STARTED, id_of_place};
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};

/// A due message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The message.
    pub slot: Slot,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// The index of its lane in the request.
    pub lane_index: usize,
}

/// The due messages that a claim looks at: at most `window` of each lane and class, oldest due first.
#[derive(Debug)]
pub struct DueWindow {
    window: usize,
    candidates: Vec<Candidate>,
    due: HashMap<Seq, Due>,
    /// Lane and class of the message that was pushed last, and how many of them there are.
    run: ((usize, i64), usize),
    more: bool,
}

/// What a claim takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// Suspects filled the window: read so many of each lane and class, and look again.
    Wider(usize),
    /// These, in claim order.
    Picked {
        /// The messages.
        due: Vec<Due>,
        /// How many suspects were passed over.
        held_back: usize,
    },
}

impl DueWindow {
    /// An empty one.
    pub fn new(window: usize) -> Self {
        Self { window, candidates: Vec::new(), due: HashMap::new(), run: ((0, -1), 0), more: false }
    }

    /// Adds a message. Those of one lane and class come one after the other.
    pub fn push(&mut self, due: Due) {
        let Due { slot, due_at, lane_index } = due;
        let class = (lane_index, slot.priority);
        let count = if self.run.0 == class { self.run.1 + 1 } else { 1 };
        self.run = (class, count);
        self.more |= count >= self.window;
        let priority = u8::try_from(slot.priority).ok().and_then(Priority::from_rank).unwrap_or_default();
        self.candidates.push(Candidate { seq: Seq(slot.seq), priority, due_at, suspect: false });
        self.due.insert(Seq(slot.seq), due);
    }

    /// Those whose history has to be looked up, because their last leases may have run out one after the other. Most
    /// claims have none, and pay nothing.
    pub fn tried(&self, request: &LeaseRequest) -> Vec<Slot> {
        let tried = |due: &&Due| {
            due.slot.attempt as usize >= SUSPECT_AFTER
                && due.slot.attempt < request.lanes[due.lane_index].attempts_max
        };
        self.due.values().filter(tried).map(|due| due.slot).collect()
    }

    /// Marks those whose last [`SUSPECT_AFTER`] attempts all ran out.
    pub fn mark_suspects(&mut self, suspects: &HashSet<i64>) {
        for candidate in &mut self.candidates {
            candidate.suspect = suspects.contains(&candidate.seq.0);
        }
    }

    /// The first `wanted` in claim order; `holds_suspect` says whether the owner holds a suspect already.
    pub fn pick(mut self, wanted: usize, holds_suspect: bool) -> Window {
        let pick = pick_candidates(std::mem::take(&mut self.candidates), wanted, holds_suspect);
        if let Some(wider) = pick.wider_window(wanted, self.window, self.more) {
            return Window::Wider(wider);
        }
        let Pick { candidates, held_back } = pick;
        let due = candidates.iter().filter_map(|candidate| self.due.get(&candidate.seq).copied());
        Window::Picked { due: due.collect(), held_back }
    }
}

impl Moves {
    /// Takes a due message out of the pending ones and leases it: returns it with the attempt that begins. Its envelope
    /// is `None` if there is no row of it.
    ///
    /// # Errors
    /// It cannot run and was dead-lettered: its attempts are used up, or its row cannot be read.
    pub fn claim(
        &mut self,
        due: &Due,
        envelope: Option<Read<Envelope>>,
        request: &LeaseRequest,
    ) -> Result<(Slot, Envelope), MessageId> {
        let slot = due.slot;
        self.leaving(&slot, Status::Pending);
        let exhausted = slot.attempt >= request.lanes[due.lane_index].attempts_max;
        match envelope {
            Some(Read { value, defect: None }) if !exhausted => {
                if slot.key_policy == UNTIL_STARTED {
                    self.free_key(slot.seq);
                }
                self.count(slot.lane, Status::Leased, 1);
                Ok((slot.with(slot.attempt().leased()), value))
            }
            refused => {
                let reason = if exhausted { Reason::Crashed } else { Reason::Undecodable };
                self.end(&slot, Status::Pending, Status::DeadLettered, Some(reason), None);
                Err(refused.map_or_else(|| id_of_place(slot.seq), |read| read.value.id))
            }
        }
    }
}
