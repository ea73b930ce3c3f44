//! Accepts that wait for somebody: a transaction that stays open with their key or their session in it.
//!
//! Accepts are written together, so one that waits lets its whole batch wait. A batch that the store gave up because of
//! it comes here, out of the way of the next ones, and is tried in halves until those that wait are alone: of a batch of
//! 512, the 511 others are stored by nine appends, and ten are in vain. One append for each would be one commit for each.
//!
//! One that waits alone is tried again from time to time, until it is stored or has waited long enough. While it waits,
//! whoever comes for the same key or session joins it, and spoils no batch.
//!
//! There is one task and one append at a time, so however many wait, the accepts that come later lose one connection.

use super::writer::{Answer, Waiting, gather, tell};
use crate::stats::StatsSender;
use crate::store::{Store, is_held, may_be_one_message};
use mailslot_core::store::{AppendGroup, Appended, SessionRef};
use mailslot_core::{LedgerKey, NewMessage, StoreError, StoreErrorKind};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many accepts may be on their way here; those that come then are told that the store is busy.
const QUEUE: usize = 4_096;

/// For how long an accept waits alone: it has waited in its batch before, and its caller may repeat it.
const WAIT: Duration = Duration::from_secs(2);

/// For how long an accept may be here at all: while this task finds out who waits, others of a batch wait with it.
const STAY: Duration = Duration::from_secs(10);

/// How long nothing is tried after one that waits has waited in vain, so that a store that answers at once is not asked
/// without end.
const PAUSE: Duration = Duration::from_millis(20);

/// How many keys and sessions are waited for, each of which costs a try in turn. Accepts that would wait for more are
/// told at once.
const ROOMS_MAX: usize = 32;

/// What an accept can have to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Thing {
    Key(LedgerKey),
    Session(SessionRef),
}

fn things(group: &AppendGroup) -> Vec<Thing> {
    let keys = group.messages.iter().flat_map(NewMessage::ledger_keys).map(Thing::Key);
    let sessions = group.messages.iter().filter_map(SessionRef::of).map(Thing::Session);
    keys.chain(sessions).collect()
}

/// The way to those who wait.
#[derive(Clone)]
pub(super) struct Aside {
    queue: mpsc::Sender<Waiting>,
    held: Arc<Held>,
}

impl Aside {
    /// Starts the task, which ends with the last handle.
    pub(super) fn start(runtime: &tokio::runtime::Handle, store: Arc<dyn Store>, stats: StatsSender) -> Self {
        let (queue, arrivals) = mpsc::channel(QUEUE);
        let held = Arc::new(Held::default());
        let task = Task {
            store,
            stats,
            arrivals,
            held: Arc::clone(&held),
            pieces: VecDeque::new(),
            rooms: VecDeque::new(),
        };
        runtime.spawn(task.run());
        Self { queue, held }
    }

    /// Takes the accepts of a batch that was given up.
    pub(super) fn take(&self, batch: Vec<Waiting>) {
        for waiting in batch {
            if let Err(full) = self.queue.try_send(waiting) {
                let detail =
                    "too many accepts wait for transactions that stay open; try again when they have ended";
                let error = StoreError::new(StoreErrorKind::Busy, "append", detail);
                let _ = full.into_inner().answer.send(Err(Arc::new(error)));
            }
        }
    }

    /// Takes those of a batch whose key or session is waited for, and gives the others back.
    pub(super) fn divert(&self, batch: Vec<Waiting>) -> Vec<Waiting> {
        let held = self.held.things();
        if held.is_empty() {
            return batch;
        }
        let waits = |waiting: &Waiting| things(&waiting.group).iter().any(|thing| held.contains(thing));
        let (waits, free) = batch.into_iter().partition(waits);
        drop(held);
        self.take(waits);
        free
    }
}

/// What is waited for.
#[derive(Debug, Default)]
struct Held(Mutex<HashSet<Thing>>);

impl Held {
    fn things(&self) -> MutexGuard<'_, HashSet<Thing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An accept that may have to wait.
struct Patient {
    waiting: Waiting,
    things: Vec<Thing>,
    until: Instant,
    /// When it leaves at the latest.
    end: Instant,
}

impl Patient {
    fn new(waiting: Waiting) -> Self {
        let end = Instant::now() + STAY;
        Self { things: things(&waiting.group), waiting, until: end, end }
    }

    fn wants(&self, wanted: &[Thing]) -> bool {
        self.things.iter().any(|thing| wanted.contains(thing))
    }

    fn answer(self, answer: Answer) {
        let _ = self.waiting.answer.send(answer);
    }
}

/// Accepts that wait for the same: what the first of them is about.
struct Room {
    members: VecDeque<Patient>,
    /// What the last try of the first met.
    error: Arc<StoreError>,
}

impl Room {
    fn things(&self) -> &[Thing] {
        self.members.front().map_or(&[], |first| &first.things)
    }

    fn join(&mut self, mut patient: Patient) {
        patient.until = patient.end.min(Instant::now() + WAIT);
        self.members.push_back(patient);
    }

    /// Tells those who have waited long enough. Gives back who joined one of them and does not want what the next one
    /// waits for.
    fn tell_late(&mut self, now: Instant) -> Vec<Patient> {
        let (late, members): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.members).into_iter().partition(|patient| patient.until <= now);
        self.members = members.into();
        if late.is_empty() {
            return Vec::new();
        }
        for patient in late {
            patient.answer(Err(Arc::clone(&self.error)));
        }
        let wanted = self.things().to_vec();
        let (members, strangers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.members).into_iter().partition(|patient| patient.wants(&wanted));
        self.members = members.into();
        strangers
    }
}

struct Task {
    store: Arc<dyn Store>,
    stats: StatsSender,
    arrivals: mpsc::Receiver<Waiting>,
    held: Arc<Held>,
    /// What is tried next.
    pieces: VecDeque<Vec<Patient>>,
    /// Who waits, in the order of their tries.
    rooms: VecDeque<Room>,
}

impl Task {
    async fn run(mut self) {
        while self.arrive().await {
            if let Some(piece) = self.pieces.pop_front() {
                self.try_piece(piece).await;
            } else if let Some(room) = self.rooms.pop_front() {
                self.try_room(room).await;
            }
            self.tell_late();
            let waited_for = self.rooms.iter().flat_map(Room::things).cloned().collect();
            *self.held.things() = waited_for;
        }
    }

    /// Lets in who has come, and waits for somebody if nobody is here. `false`: nobody will come any more.
    async fn arrive(&mut self) -> bool {
        let first = if self.pieces.is_empty() && self.rooms.is_empty() {
            match self.arrivals.recv().await {
                Some(first) => Some(first),
                None => return false,
            }
        } else {
            self.arrivals.try_recv().ok()
        };
        if let Some(first) = first {
            let piece = gather(first, &mut self.arrivals).into_iter().map(Patient::new).collect();
            self.admit(piece);
        }
        true
    }

    /// Those join a room who would wait in it; the others are tried together.
    fn admit(&mut self, piece: Vec<Patient>) {
        let mut rest = Vec::new();
        for patient in piece {
            match self.rooms.iter_mut().find(|room| patient.wants(room.things())) {
                Some(room) => room.join(patient),
                None => rest.push(patient),
            }
        }
        if !rest.is_empty() {
            self.pieces.push_back(rest);
        }
    }

    async fn try_piece(&mut self, mut piece: Vec<Patient>) {
        match self.append(&piece).await {
            Ok(stored) => self.tell(piece, stored),
            Err(error) if piece.len() > 1 && is_worth_halving(&error, &piece) => {
                let second = piece.split_off(piece.len() / 2);
                self.pieces.push_front(second);
                self.pieces.push_front(piece);
            }
            Err(error) if is_held(&error) && self.rooms.len() < ROOMS_MAX => {
                self.open_room(piece, Arc::new(error));
            }
            Err(error) => {
                let error = Arc::new(error);
                for patient in piece {
                    patient.answer(Err(Arc::clone(&error)));
                }
            }
        }
    }

    /// For one that has to wait, with everybody who wants the same.
    fn open_room(&mut self, alone: Vec<Patient>, error: Arc<StoreError>) {
        let mut room = Room { members: VecDeque::new(), error };
        for patient in alone {
            room.join(patient);
        }
        for piece in std::mem::take(&mut self.pieces) {
            let (joining, others): (Vec<_>, Vec<_>) =
                piece.into_iter().partition(|patient| patient.wants(room.things()));
            for patient in joining {
                room.join(patient);
            }
            if !others.is_empty() {
                self.pieces.push_back(others);
            }
        }
        self.rooms.push_back(room);
    }

    /// Tries the first for all of them.
    async fn try_room(&mut self, mut room: Room) {
        let Some(first) = room.members.pop_front() else { return };
        let first = [first];
        let answer = self.append(&first).await;
        let [first] = first;
        match answer {
            Err(error) if is_held(&error) => {
                room.members.push_front(first);
                room.error = Arc::new(error);
                self.rooms.push_back(room);
                self.pause().await;
            }
            answer => {
                self.admit(room.members.into());
                match answer {
                    Ok(stored) => self.tell(vec![first], stored),
                    Err(error) => first.answer(Err(Arc::new(error))),
                }
            }
        }
    }

    /// Who comes meanwhile ends it.
    async fn pause(&mut self) {
        let end = Instant::now() + PAUSE;
        match tokio::time::timeout_at(end, self.arrivals.recv()).await {
            Ok(Some(arrived)) => self.admit(vec![Patient::new(arrived)]),
            // Nobody comes any more.
            Ok(None) => tokio::time::sleep_until(end).await,
            Err(_) => {}
        }
    }

    fn tell_late(&mut self) {
        let now = Instant::now();
        for mut room in std::mem::take(&mut self.rooms) {
            let strangers = room.tell_late(now);
            if !strangers.is_empty() {
                self.pieces.push_back(strangers);
            }
            if !room.members.is_empty() {
                self.rooms.push_back(room);
            }
        }
    }

    async fn append(&self, piece: &[Patient]) -> Result<Vec<Vec<Appended>>, StoreError> {
        self.store.append(piece.iter().map(|patient| patient.waiting.group.clone()).collect()).await
    }

    fn tell(&self, piece: Vec<Patient>, stored: Vec<Vec<Appended>>) {
        for (patient, stored) in piece.into_iter().zip(stored) {
            tell(&self.stats, patient.waiting.answer, stored);
        }
    }
}

fn is_worth_halving(error: &StoreError, piece: &[Patient]) -> bool {
    let is_late = piece.iter().any(|patient| patient.end <= Instant::now());
    may_be_one_message(error) || is_held(error) && !is_late
}

#[cfg(test)]
mod tests;
