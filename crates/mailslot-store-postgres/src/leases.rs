//! Leases: what is known of those that this process holds, and taking members out of them.

use crate::link::{Param, Session};
use crate::queries;
use mailslot_core::moves::{Member, Slot};
use mailslot_core::stored::RowReader;
use mailslot_core::{LeaseToken, Seq, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// Most leases that are remembered. A worker holds a few; those that it never settles make room for others.
const REMEMBERED_MAX: usize = 4_096;

/// A leased message with its place in the lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) slot: Slot,
    pub(crate) index: usize,
}

/// A lease as it was claimed.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) owner: Uuid,
    pub(crate) size: usize,
    pub(crate) members: HashMap<i64, Place>,
}

/// The leases that this process claimed, so that a plain settlement needs to read nothing. What is remembered decides
/// nothing: each statement checks the lease's row.
#[derive(Debug, Default)]
pub(crate) struct LeaseCache(Mutex<BTreeMap<i64, Remembered>>);

impl LeaseCache {
    pub(crate) fn remember(&self, generation: i64, owner: Uuid, slots: &[Slot]) {
        let members = slots.iter().enumerate().map(|(index, slot)| (slot.seq, Place { slot: *slot, index }));
        let lease = Remembered { owner, size: slots.len(), members: members.collect() };
        let mut leases = self.leases();
        leases.insert(generation, lease);
        while leases.len() > REMEMBERED_MAX {
            leases.pop_first();
        }
    }

    /// A member of a lease, and how many the lease had.
    pub(crate) fn find(&self, lease: &LeaseToken, seq: Seq) -> Option<(Place, usize)> {
        let leases = self.leases();
        let remembered =
            leases.get(&lease.generation).filter(|remembered| remembered.owner == lease.owner)?;
        Some((*remembered.members.get(&seq.0)?, remembered.size))
    }

    /// Forgets members that were settled, and the lease with its last one.
    pub(crate) fn settled(&self, generation: i64, seqs: impl IntoIterator<Item = i64>) {
        let mut leases = self.leases();
        let Some(remembered) = leases.get_mut(&generation) else { return };
        for seq in seqs {
            remembered.members.remove(&seq);
        }
        if remembered.members.is_empty() {
            leases.remove(&generation);
        }
    }

    pub(crate) fn forget(&self, generation: i64) {
        self.leases().remove(&generation);
    }

    fn leases(&self) -> std::sync::MutexGuard<'_, BTreeMap<i64, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which members of a lease, as the bits that the lease's row has.
pub(crate) fn mask(size: usize, members: impl IntoIterator<Item = usize>) -> String {
    let mut bits = vec![b'0'; size];
    for index in members {
        if let Some(bit) = bits.get_mut(index) {
            *bit = b'1';
        }
    }
    String::from_utf8(bits).expect("zeros and ones are text")
}

/// Where the members are that were read and locked: what [`leave`] needs to take them out.
#[derive(Debug, Default)]
pub(crate) struct Settling(HashMap<i64, (i64, usize, usize)>);

/// Open members of leases, which are locked until the transaction ends, with the leases' owners. `seqs`: only these, or
/// all if it is empty.
pub(crate) async fn lock(
    session: &mut Session<'_>,
    leases: Vec<i64>,
    seqs: Vec<i64>,
    settling: &mut Settling,
) -> Result<(HashMap<i64, Uuid>, Vec<Member>), StoreError> {
    let (mut owners, mut members) = (HashMap::new(), Vec::new());
    for row in session.rows(queries::LEASE_MEMBERS, vec![Param::ints(leases), Param::ints(seqs)]).await? {
        let reader = RowReader::new(&row);
        let lease = row.int(0);
        owners.insert(lease, reader.bytes(1).and_then(|id| Uuid::from_slice(id).ok()).unwrap_or_default());
        let attempt = reader.attempt(8);
        let slot = Slot {
            seq: row.int(5),
            lane: row.int(6),
            priority: row.int(7),
            generation: attempt.generation,
            attempt: attempt.number,
            session: reader.integer(10),
            key_policy: row.int(11),
        };
        settling.0.insert(slot.seq, (lease, usize_of(row.int(2)), usize_of(row.int(3))));
        members.push(Member { slot, lease, cancel_requested: row.int(4) != 0 });
    }
    Ok((owners, members))
}

/// Takes members out of their leases, which [`lock`] has locked; a lease without members goes.
pub(crate) async fn leave(
    session: &mut Session<'_>,
    slots: &[Slot],
    settling: &Settling,
) -> Result<(), StoreError> {
    let mut leases: BTreeMap<i64, (usize, Vec<usize>)> = BTreeMap::new();
    for slot in slots {
        if let Some(&(lease, index, size)) = settling.0.get(&slot.seq) {
            leases.entry(lease).or_insert((size, Vec::new())).1.push(index);
        }
    }
    let masks: Vec<_> = leases.values().map(|(size, members)| mask(*size, members.iter().copied())).collect();
    let params = vec![
        Param::ints(leases.keys().copied()),
        Param::ints(leases.values().map(|(_, members)| i64::try_from(members.len()).unwrap_or(i64::MAX))),
        Param::texts(masks.iter().map(String::as_str)),
    ];
    session.execute(queries::LEASE_SETTLE, params).await.map(|_| ())
}

fn usize_of(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}
