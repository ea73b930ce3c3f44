//! The turn of a worker in one statement: plain successes are settled and what is due is leased, in one commit. What
//! needs a closer look is left alone by the statement, and goes the long way in `settle.rs` and `claim.rs`.

use crate::error::During;
use crate::hints::Look;
use crate::leases::{LeaseCache, mask};
use crate::link_sqlx::PgColumns;
use jiff::Timestamp;
use mailslot_core::moves::Slot;
use mailslot_core::store::LeaseRequest;
use mailslot_core::stored::{Read, RowReader, instant, micros};
use mailslot_core::{Disposition, Envelope, LeaseToken, Settlement, StoreError};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Row as _, SqlStr};
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

const OPERATION: &str = "exchange";

/// Settlements that the statement can do: those of plain successes whose lease is remembered.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    leases: BTreeMap<i64, PlainLease>,
    /// For each settlement of the exchange: its lease, if it is among them.
    pub(crate) places: Vec<Option<i64>>,
}

#[derive(Debug)]
struct PlainLease {
    owner: Uuid,
    size: usize,
    members: Vec<(usize, Slot)>,
}

impl Plain {
    pub(crate) fn of(settlements: &[Settlement], cache: &LeaseCache) -> Self {
        let mut plain = Self::default();
        let mut seen = HashSet::new();
        for settlement in settlements {
            let place = plain.take(settlement, cache, &mut seen);
            plain.places.push(place);
        }
        plain
    }

    fn take(&mut self, settlement: &Settlement, cache: &LeaseCache, seen: &mut HashSet<i64>) -> Option<i64> {
        let Settlement { lease, seq, attempt, disposition, error } = settlement;
        if *disposition != Disposition::Complete || error.is_some() {
            return None;
        }
        let (place, size) = cache.find(lease, *seq)?;
        let slot = place.slot;
        let follows = slot.session.is_some() || slot.key_policy == mailslot_core::stored::UNTIL_FINISHED;
        if follows || slot.attempt() != *attempt || !seen.insert(seq.0) {
            return None;
        }
        let empty = || PlainLease { owner: lease.owner, size, members: Vec::new() };
        self.leases.entry(lease.generation).or_insert_with(empty).members.push((place.index, slot));
        Some(lease.generation)
    }

    /// Forgets what was settled, and the leases that were lost.
    pub(crate) fn remember(&self, held: &HashSet<i64>, cache: &LeaseCache) {
        for (generation, lease) in &self.leases {
            if held.contains(generation) {
                cache.settled(*generation, lease.members.iter().map(|(_, slot)| slot.seq));
            } else {
                cache.forget(*generation);
            }
        }
    }
}

/// A claim for the statement.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'r> {
    pub(crate) request: &'r LeaseRequest,
    /// Lane and class, as `Look::since` has them, with the index of the lane in the request.
    pub(crate) branches: &'r [(i64, i64)],
    pub(crate) look: &'r Look,
}

/// What the statement did.
#[derive(Debug)]
pub(crate) struct Done {
    /// The leases that held their settlements.
    pub(crate) held: HashSet<i64>,
    pub(crate) now: Timestamp,
    /// In claim order.
    pub(crate) taken: Vec<Taken>,
    pub(crate) generation: Option<i64>,
    /// Whether it left something for the long way.
    pub(crate) odd: bool,
    pub(crate) next_due: Option<Timestamp>,
}

/// A leased message; its attempt has begun.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) slot: Slot,
    pub(crate) due_at: i64,
    /// `None`: there is no row of it.
    pub(crate) envelope: Option<Read<Envelope>>,
}

impl Taken {
    /// As the core's rule for candidates ranks them.
    fn rank(&self) -> (i64, i64) {
        (self.due_at + self.slot.priority * 30_000_000, self.slot.seq)
    }
}

/// Runs the statement.
pub(crate) async fn exchange(
    db: &mut PgConnection,
    (sql, persistent): (SqlStr, bool),
    time: Option<i64>,
    plain: &Plain,
    wanted: Option<&Wanted<'_>>,
) -> Result<Done, StoreError> {
    let statement = sqlx::query(sql).persistent(persistent).bind(time);
    let statement = bind_plain(statement, plain);
    let rows = bind_wanted(statement, wanted).fetch_all(db).await.during(OPERATION)?;
    read(&rows, wanted)
}

type Statement<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

fn bind_plain<'q>(statement: Statement<'q>, plain: &Plain) -> Statement<'q> {
    let leases = &plain.leases;
    let members =
        || leases.iter().flat_map(|(lease, plain)| plain.members.iter().map(move |(_, slot)| (*lease, slot)));
    let mut lanes: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for (lease, slot) in members() {
        *lanes.entry((lease, slot.lane)).or_default() += 1;
    }
    let int = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    let count = |lease: &PlainLease| i32::try_from(lease.members.len()).unwrap_or(i32::MAX);
    let bits = |lease: &PlainLease| mask(lease.size, lease.members.iter().map(|(index, _)| *index));
    statement
        .bind(leases.keys().copied().collect::<Vec<_>>())
        .bind(leases.values().map(|lease| lease.owner).collect::<Vec<_>>())
        .bind(leases.values().map(count).collect::<Vec<_>>())
        .bind(leases.values().map(bits).collect::<Vec<_>>())
        .bind(members().map(|(_, slot)| slot.seq).collect::<Vec<_>>())
        .bind(members().map(|(_, slot)| int(slot.generation.into())).collect::<Vec<_>>())
        .bind(members().map(|(_, slot)| int(slot.attempt.into())).collect::<Vec<_>>())
        .bind(members().map(|(lease, _)| lease).collect::<Vec<_>>())
        .bind(lanes.keys().map(|(lease, _)| *lease).collect::<Vec<_>>())
        .bind(lanes.keys().map(|(_, lane)| int(*lane)).collect::<Vec<_>>())
        .bind(lanes.into_values().collect::<Vec<_>>())
}

fn bind_wanted<'q>(statement: Statement<'q>, wanted: Option<&Wanted<'_>>) -> Statement<'q> {
    let Some(Wanted { request, branches, look }) = wanted else {
        let none = (Vec::<i32>::new(), Vec::<i16>::new(), Vec::<i64>::new());
        let statement = statement.bind(0_i64).bind(none.0.clone()).bind(none.1).bind(none.0).bind(none.2);
        return statement.bind(None::<i64>).bind(None::<Uuid>).bind(None::<String>).bind(None::<i64>);
    };
    let attempts = request.lanes.iter().flat_map(|lane| {
        let most = i32::try_from(lane.attempts_max).unwrap_or(i32::MAX);
        [most; CLASSES]
    });
    statement
        .bind(i64::try_from(request.limit).unwrap_or(i64::MAX))
        .bind(branches.iter().map(|(lane, _)| i32::try_from(*lane).unwrap_or_default()).collect::<Vec<_>>())
        .bind(branches.iter().map(|(_, class)| i16::try_from(*class).unwrap_or_default()).collect::<Vec<_>>())
        .bind(attempts.collect::<Vec<_>>())
        .bind(look.since.clone())
        // Rounded down: what becomes due within this microsecond is not due yet.
        .bind(request.due_until.map(jiff::Timestamp::as_microsecond))
        .bind(request.owner.session())
        .bind(request.owner.label().to_owned())
        .bind(i64::try_from(request.duration.as_micros()).unwrap_or(i64::MAX))
}

/// How many classes of priority there are.
pub(crate) const CLASSES: usize = mailslot_core::Priority::ALL.len();

/// Lane and class of each range of `ready` that a claim walks, lane by lane as the request has them.
pub(crate) fn branches(lanes: &[i64]) -> Vec<(i64, i64)> {
    let classes = || mailslot_core::Priority::ALL.iter().map(|priority| i64::from(priority.rank()));
    lanes.iter().flat_map(|lane| classes().map(|class| (*lane, class))).collect()
}

fn read(rows: &[PgRow], wanted: Option<&Wanted<'_>>) -> Result<Done, StoreError> {
    let first = rows.first().ok_or_else(|| StoreError::unexpected(OPERATION, "the statement gave no row"))?;
    let int = |index| first.try_get::<Option<i64>, _>(index).during(OPERATION);
    let held: Option<String> = first.try_get(24).during(OPERATION)?;
    let held = held.unwrap_or_default().split(',').filter_map(|lease| lease.parse().ok()).collect();
    let mut taken: Vec<_> = wanted
        .map(|wanted| rows.iter().filter_map(|row| read_taken(row, wanted)).collect())
        .unwrap_or_default();
    taken.sort_unstable_by_key(Taken::rank);
    Ok(Done {
        held,
        now: instant(int(23)?.unwrap_or_default()),
        taken,
        generation: int(22)?,
        odd: first.try_get(25).during(OPERATION)?,
        next_due: int(26)?.map(instant),
    })
}

fn read_taken(row: &PgRow, wanted: &Wanted<'_>) -> Option<Taken> {
    let columns = PgColumns(row);
    let mut reader = RowReader::new(&columns);
    let number = |reader: &RowReader<'_, PgColumns<'_>>, index| reader.integer(index).unwrap_or_default();
    let seq = reader.integer(14)?;
    let attempt = reader.attempt(18);
    let slot = Slot {
        seq,
        lane: number(&reader, 15),
        priority: number(&reader, 16),
        generation: attempt.generation,
        attempt: attempt.number,
        session: reader.integer(20),
        key_policy: number(&reader, 21),
    };
    let due_at = number(&reader, 17);
    let branch = wanted.branches.iter().position(|(lane, _)| *lane == slot.lane)?;
    let lane = wanted.request.lanes.get(branch / CLASSES)?;
    let exists = reader.integer(0).is_some();
    let envelope = exists.then(|| {
        let envelope = reader.envelope(lane.endpoint.clone(), lane.contract.clone());
        reader.done(envelope)
    });
    Some(Taken { slot, due_at, envelope })
}

/// What a lease of the statement is known by.
pub(crate) fn token(request: &LeaseRequest, generation: i64) -> LeaseToken {
    LeaseToken { owner: request.owner.session(), generation }
}

/// The end of a lease that began at `now`.
pub(crate) fn until(request: &LeaseRequest, now: Timestamp) -> Timestamp {
    let duration = i64::try_from(request.duration.as_micros()).unwrap_or(i64::MAX);
    instant(micros(now).saturating_add(duration))
}

/// The settlements that the statement did not do, with their places in the exchange.
pub(crate) fn rest(
    settlements: Vec<Settlement>,
    plain: &Plain,
    held: &HashSet<i64>,
) -> (Vec<usize>, Vec<Settlement>) {
    let done = |place: &Option<i64>| place.is_some_and(|lease| held.contains(&lease));
    let all = settlements.into_iter().zip(&plain.places).enumerate();
    all.filter(|(_, (_, place))| !done(place)).map(|(index, (settlement, _))| (index, settlement)).unzip()
}

/// The lanes of a request by their names.
pub(crate) fn lane_ids(
    request: &LeaseRequest,
    numbers: &HashMap<mailslot_core::stored::LaneKey, i64>,
) -> Vec<i64> {
    let id = |lane: &mailslot_core::store::LaneRequest| {
        numbers.get(&(lane.endpoint.clone(), lane.contract.clone())).copied().unwrap_or_default()
    };
    request.lanes.iter().map(id).collect()
}
