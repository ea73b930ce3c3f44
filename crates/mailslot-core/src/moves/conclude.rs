//! What a batch of conclusions comes to, and the moves of the deliveries that it stores.

use super::gather::Moves;
use super::slot::Slot;
use crate::delivered::{DeliveryIdentity, DeliveryKey};
use crate::id::MessageId;
use crate::outcome::{Disposition, ErrorText};
use crate::state::Status;
use crate::store::{AppendGroup, Appended, Concluded, Conclusion, Known, Stored};
use std::collections::{HashMap, HashSet};

/// A batch of conclusions on its way through a transaction.
///
/// The first conclusion about a delivery decides. Those that repeat it within the batch are answered by what is known
/// afterwards.
#[derive(Debug)]
pub struct Conclusions {
    answers: Vec<Option<Concluded>>,
    /// Deliveries to record as handled.
    pub recorded: Vec<DeliveryIdentity>,
    stored: Vec<(usize, Stored)>,
    repeated: Vec<(usize, Repeated)>,
}

#[derive(Debug)]
struct Repeated {
    key: DeliveryKey,
    handled: bool,
}

/// The identities of conclusions: what has to be looked up before [`Conclusions::new`].
pub fn identities(conclusions: &[Conclusion]) -> impl Iterator<Item = &DeliveryIdentity> {
    conclusions.iter().filter_map(|conclusion| match conclusion {
        Conclusion::Handled(identity) => Some(identity),
        Conclusion::Store(stored) => stored.identity.as_ref(),
    })
}

impl Conclusions {
    /// Decides by what is known of the deliveries. A claim does not count: success is success, whoever has claimed it.
    pub fn new(conclusions: Vec<Conclusion>, known: &HashMap<DeliveryKey, Known>) -> Self {
        let mut batch = Self {
            answers: vec![None; conclusions.len()],
            recorded: Vec::new(),
            stored: Vec::new(),
            repeated: Vec::new(),
        };
        let mut seen = HashSet::new();
        for (place, conclusion) in conclusions.into_iter().enumerate() {
            batch.decide(place, conclusion, known, &mut seen);
        }
        batch
    }

    fn decide(
        &mut self,
        place: usize,
        conclusion: Conclusion,
        known: &HashMap<DeliveryKey, Known>,
        seen: &mut HashSet<DeliveryKey>,
    ) {
        let handled = matches!(conclusion, Conclusion::Handled(_));
        let key = identities(std::slice::from_ref(&conclusion)).next().map(DeliveryIdentity::key);
        if let Some(key) = key {
            if !seen.insert(key) {
                self.repeated.push((place, Repeated { key, handled }));
                return;
            }
            if let Some(answer) = known.get(&key).and_then(|known| answer(*known, handled)) {
                self.answers[place] = Some(answer);
                return;
            }
        }
        match conclusion {
            Conclusion::Handled(identity) => {
                self.recorded.push(identity);
                self.answers[place] = Some(Concluded::Recorded);
            }
            Conclusion::Store(stored) => self.stored.push((place, *stored)),
        }
    }

    /// The messages to append, one group for each.
    pub fn groups(&self) -> Vec<AppendGroup> {
        self.stored.iter().map(|(_, stored)| AppendGroup::from(stored.message.clone())).collect()
    }

    /// Takes the answers to the append of [`Conclusions::groups`] and the numbers of those that it stored, in order.
    pub fn appended(
        &mut self,
        answers: Vec<Vec<Appended>>,
        seqs: impl IntoIterator<Item = i64>,
    ) -> Vec<Placed> {
        let mut seqs = seqs.into_iter();
        let mut placed = Vec::new();
        for ((place, stored), answer) in std::mem::take(&mut self.stored).into_iter().zip(answers) {
            // A generated id cannot be known, so what has no receipt met a full session.
            match answer.first().and_then(Appended::receipt).and_then(|_| seqs.next()) {
                Some(seq) => placed.push(Placed { place, seq, stored }),
                None => self.answers[place] = Some(Concluded::SessionFull),
            }
        }
        placed
    }

    /// Takes what became of a stored delivery.
    pub fn answer(&mut self, placed: &Placed, status: Status) {
        self.answers[placed.place] = Some(Concluded::Stored { id: placed.id(), status });
    }

    /// The keys of conclusions that repeat others: they are looked up once everything else is written.
    pub fn repeated(&self) -> Vec<DeliveryKey> {
        self.repeated.iter().map(|(_, repeated)| repeated.key).collect()
    }

    /// The answers in order; `known` is what is known of the repeated ones now.
    ///
    /// # Panics
    /// A stored delivery was not answered.
    pub fn finish(mut self, known: &HashMap<DeliveryKey, Known>) -> Vec<Concluded> {
        for (place, Repeated { key, handled }) in self.repeated {
            // One that is not known was kept out by a full session.
            let again = known.get(&key).and_then(|known| answer(*known, handled));
            self.answers[place] = Some(again.unwrap_or(Concluded::SessionFull));
        }
        self.answers.into_iter().map(|answer| answer.expect("every conclusion was answered")).collect()
    }
}

/// The answer to a conclusion about a delivery that has come to something. `None`: it is open.
fn answer(known: Known, handled: bool) -> Option<Concluded> {
    match known {
        Known::Completed if handled => Some(Concluded::Recorded),
        Known::Completed | Known::Stored { .. } => Some(Concluded::Known(known)),
        Known::Claimed { .. } => None,
    }
}

/// A delivery whose message is stored now.
#[derive(Debug)]
pub struct Placed {
    place: usize,
    /// The number of its message.
    pub seq: i64,
    stored: Stored,
}

impl Placed {
    /// What it is recognised by.
    pub fn identity(&self) -> Option<&DeliveryIdentity> {
        self.stored.identity.as_ref()
    }

    fn id(&self) -> MessageId {
        self.stored.message.id
    }

    /// What its handler decided.
    pub fn take_handled(&mut self) -> Option<(Disposition, Option<ErrorText>)> {
        self.stored.handled.take()
    }
}

impl Moves {
    /// Moves a delivery that was stored in this transaction as its handler decided. Returns where it stands then: one that
    /// found its session taken waits, whatever was decided.
    pub fn conclude(&mut self, placed: &mut Placed, slot: &Slot, status: Status) -> Status {
        match placed.take_handled() {
            Some((disposition, error)) if status == Status::Pending => {
                let slot = slot.with(slot.attempt().leased());
                self.apply_from(Status::Pending, slot, disposition.effect(false), error)
            }
            _ => status,
        }
    }
}
