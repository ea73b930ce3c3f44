//! The order in which deliveries are handled: those of one lane one after the other, lanes side by side.

use mailslot_core::DeliveryKey;
use mailslot_core::store::SessionRef;
use std::collections::{HashMap, VecDeque};

/// What keeps deliveries apart: those that share one are handled one at a time, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    /// A session, whose order matters.
    Session(SessionRef),
    /// One message, of which a second copy has to find the record of the first.
    Message(DeliveryKey),
}

/// Deliveries that this process holds and has not begun to handle.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    ready: VecDeque<(Option<Lane>, T)>,
    /// Lanes of which one is ready or running, with those behind it.
    behind: HashMap<Lane, VecDeque<T>>,
    waiting: usize,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { ready: VecDeque::new(), behind: HashMap::new(), waiting: 0 }
    }
}

impl<T> Lanes<T> {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.waiting
    }

    /// Takes one in.
    pub(super) fn push(&mut self, lane: Option<Lane>, item: T) {
        if let Some(lane) = &lane {
            if let Some(behind) = self.behind.get_mut(lane) {
                behind.push_back(item);
                self.waiting += 1;
                return;
            }
            self.behind.insert(lane.clone(), VecDeque::new());
        }
        self.ready.push_back((lane, item));
    }

    /// Gives the next one that may be handled. Its lane stays taken until [`Lanes::done`] or [`Lanes::gave_back`].
    pub(super) fn take(&mut self) -> Option<(Option<Lane>, T)> {
        self.ready.pop_front()
    }

    /// One of a lane is done with: the next one may be handled.
    pub(super) fn done(&mut self, lane: Lane) {
        let Some(behind) = self.behind.get_mut(&lane) else { return };
        match behind.pop_front() {
            Some(next) => {
                self.waiting -= 1;
                self.ready.push_back((Some(lane), next));
            }
            None => drop(self.behind.remove(&lane)),
        }
    }

    /// One of a lane went back to its broker: so must those behind it, or they would overtake it.
    pub(super) fn gave_back(&mut self, lane: &Lane) -> impl Iterator<Item = T> + use<T> {
        let behind = self.behind.remove(lane).unwrap_or_default();
        self.waiting -= behind.len();
        behind.into_iter()
    }

    /// Gives all that wait, those of each lane in the order in which they came. Lanes of which one is running stay taken.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.waiting = 0;
        let mut drained = Vec::new();
        for (lane, item) in std::mem::take(&mut self.ready) {
            drained.push(item);
            drained.extend(lane.and_then(|lane| self.behind.remove(&lane)).into_iter().flatten());
        }
        drained.extend(self.behind.values_mut().flat_map(std::mem::take));
        drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailslot_core::{EndpointName, SessionKey};

    fn lane(session: &str) -> Lane {
        let key = SessionKey::new(session).unwrap();
        Lane::Session(SessionRef { endpoint: EndpointName::default(), tenant: None, key })
    }

    #[test]
    fn a_lane_hands_out_one_at_a_time_in_order_and_holds_up_no_other() {
        let mut lanes = Lanes::default();
        for (name, item) in [("a", 1), ("a", 2), ("b", 3), ("a", 4)] {
            lanes.push(Some(lane(name)), item);
        }
        lanes.push(None, 5);
        assert_eq!(lanes.len(), 5);
        let taken: Vec<_> = std::iter::from_fn(|| lanes.take()).collect();
        assert_eq!(taken, [(Some(lane("a")), 1), (Some(lane("b")), 3), (None, 5)]);
        for next in [Some(2), Some(4), None] {
            lanes.done(lane("a"));
            assert_eq!(lanes.take().map(|(_, item)| item), next);
        }
        assert_eq!(lanes.len(), 0);
        lanes.push(Some(lane("a")), 6);
        assert_eq!(lanes.take(), Some((Some(lane("a")), 6)), "an idle lane is free again");
    }

    #[test]
    fn what_is_behind_one_that_went_back_goes_back_with_it() {
        let mut lanes = Lanes::default();
        for item in 1..=3 {
            lanes.push(Some(lane("a")), item);
        }
        lanes.push(Some(lane("b")), 4);
        assert_eq!(lanes.take().map(|(_, item)| item), Some(1));
        assert_eq!(lanes.gave_back(&lane("a")).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(lanes.len(), 1);
        lanes.push(Some(lane("a")), 5);
        lanes.push(Some(lane("a")), 6);
        assert_eq!(lanes.drain(), [4, 5, 6]);
        assert_eq!(lanes.len(), 0);
    }

    #[test]
    fn the_lane_of_one_that_runs_stays_taken_when_those_that_wait_go() {
        let mut lanes = Lanes::default();
        lanes.push(Some(lane("a")), 1);
        lanes.push(Some(lane("a")), 2);
        lanes.take();
        assert_eq!(lanes.drain(), [2]);
        lanes.push(Some(lane("a")), 3);
        assert_eq!(lanes.take(), None, "the first one runs");
        lanes.done(lane("a"));
        assert_eq!(lanes.take().map(|(_, item)| item), Some(3));
    }
}
