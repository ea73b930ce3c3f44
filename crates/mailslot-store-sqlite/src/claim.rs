//! Claiming: pick by the core's rule, refuse what cannot run, lease the rest.

use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::{Row, json};
use jiff::Timestamp;
use mailslot_core::limits::SUSPECT_AFTER;
use mailslot_core::moves::{Moves, Slot};
use mailslot_core::store::{Candidate, Exchanged, LeaseRequest, Leased, pick_candidates};
use mailslot_core::stored::{Read, RowReader, UNTIL_STARTED, id_of_place, instant, later, micros};
use mailslot_core::{Envelope, LeaseToken, Priority, Reason, Seq, Status, StoreError, TenantName};
use serde::Deserialize;
use sqlx::SqliteConnection;
use std::collections::{HashMap, HashSet};

const OPERATION: &str = "exchange";

/// A due message of `ready/pick.sql`.
#[derive(Debug, Deserialize)]
struct Due(i64, i64, u32, u32, Option<i64>, i64);

/// A candidate with what a lease needs to know of it.
#[derive(Debug, Clone, Copy)]
struct Picked {
    slot: Slot,
    due_at: Timestamp,
    /// Its place in the request's lanes.
    lane_index: usize,
}

/// Candidates, what is known of each, and whether there may be more.
type Candidates = (Vec<Candidate>, HashMap<Seq, Picked>, bool);

/// A claim in a transaction.
pub(crate) struct Claim<'r> {
    request: &'r LeaseRequest,
    lanes: String,
    now: Timestamp,
    due_until: Timestamp,
    /// The fence, once there is something to lease.
    token: Option<LeaseToken>,
}

impl<'r> Claim<'r> {
    pub(crate) fn new(request: &'r LeaseRequest, now: Timestamp) -> Self {
        let lanes: Vec<_> = request
            .lanes
            .iter()
            .map(|lane| (&lane.endpoint, lane.contract.name(), lane.contract.version()))
            .collect();
        let due_until = request.due_until.map_or(now, |until| until.min(now));
        Self { request, lanes: json(&lanes), now, due_until, token: None }
    }

    /// Whether anything can be claimed, and how many are held back. For a reader: an empty claim need not take the
    /// write lock.
    pub(crate) async fn finds_work(&self, db: &mut SqliteConnection) -> Result<(bool, usize), StoreError> {
        let (picked, held_back) = self.pick(db, 1).await?;
        Ok((!picked.is_empty(), held_back))
    }

    /// When the next message of the lanes becomes due.
    pub(crate) async fn next_due(&self, db: &mut SqliteConnection) -> Result<Option<Timestamp>, StoreError> {
        let find = sqlx::query_scalar(queries::READY_NEXT_DUE).bind(&self.lanes).bind(micros(self.now));
        let next: Option<i64> = find.fetch_one(db).await.during(OPERATION)?;
        Ok(next.map(instant))
    }

    /// Claims into `exchanged`. The caller finishes the moves.
    pub(crate) async fn run(
        mut self,
        db: &mut SqliteConnection,
        moves: &mut Moves,
        exchanged: &mut Exchanged,
    ) -> Result<(), StoreError> {
        // Refused messages make room for others, so the claim goes on until it is full or nothing is due.
        while exchanged.leased.len() < self.request.limit {
            let (picked, held_back) = self.pick(db, self.request.limit - exchanged.leased.len()).await?;
            exchanged.held_back = held_back;
            if picked.is_empty() {
                break;
            }
            let refused = exchanged.refused.len();
            self.take(db, picked, moves, exchanged).await?;
            if exchanged.refused.len() == refused {
                break;
            }
        }
        if exchanged.leased.len() < self.request.limit {
            exchanged.next_due = self.next_due(db).await?;
        }
        Ok(())
    }

    /// The first due messages in claim order, and how many were held back.
    async fn pick(
        &self,
        db: &mut SqliteConnection,
        wanted: usize,
    ) -> Result<(Vec<Picked>, usize), StoreError> {
        let mut window = wanted;
        loop {
            let (mut candidates, found, more) = self.candidates(db, window).await?;
            let holds_suspect = self.mark_suspects(db, &mut candidates, &found).await?;
            let pick = pick_candidates(candidates, wanted, holds_suspect);
            if let Some(wider) = pick.wider_window(wanted, window, more) {
                window = wider;
                continue;
            }
            let picked = pick.candidates.iter().filter_map(|candidate| found.get(&candidate.seq).copied());
            return Ok((picked.collect(), pick.held_back));
        }
    }

    /// At most `window` due messages of each lane and class, and whether there may be more.
    async fn candidates(&self, db: &mut SqliteConnection, window: usize) -> Result<Candidates, StoreError> {
        let find = sqlx::query_as(queries::READY_PICK)
            .bind(&self.lanes)
            // Rounded down: what becomes due within this microsecond is not due yet.
            .bind(self.due_until.as_microsecond())
            .bind(i64::try_from(window).unwrap_or(i64::MAX))
            .bind(self.request.tenant.as_ref().map(TenantName::as_str));
        let rows: Vec<(i64, i64, i64, String)> = find.fetch_all(db).await.during(OPERATION)?;
        let mut found = HashMap::new();
        let mut candidates = Vec::new();
        let mut more = false;
        for (lane_index, lane, rank, due) in rows {
            let priority = u8::try_from(rank).ok().and_then(Priority::from_rank).unwrap_or_default();
            let due: Vec<Due> = serde_json::from_str(&due).during(OPERATION)?;
            more |= due.len() == window;
            for Due(seq, due_at, generation, attempt, session, key_policy) in due {
                let slot = Slot { seq, lane, priority: rank, generation, attempt, session, key_policy };
                let (due_at, lane_index) = (instant(due_at), usize::try_from(lane_index).unwrap_or_default());
                found.insert(Seq(seq), Picked { slot, due_at, lane_index });
                candidates.push(Candidate { seq: Seq(seq), priority, due_at, suspect: false });
            }
        }
        Ok((candidates, found, more))
    }

    /// Marks the candidates whose last leases ran out, and says whether the owner holds such a message. Only messages
    /// with that many attempts are looked up, so ordinary claims pay nothing.
    async fn mark_suspects(
        &self,
        db: &mut SqliteConnection,
        candidates: &mut [Candidate],
        found: &HashMap<Seq, Picked>,
    ) -> Result<bool, StoreError> {
        let tried = |candidate: &&Candidate| {
            let Picked { slot, lane_index, .. } = found[&candidate.seq];
            slot.attempt as usize >= SUSPECT_AFTER
                && slot.attempt < self.request.lanes[lane_index].attempts_max
        };
        let tried = candidates.iter().filter(tried).map(|candidate| {
            let slot = found[&candidate.seq].slot;
            (slot.seq, slot.generation, slot.attempt)
        });
        let tried: Vec<_> = tried.collect();
        if tried.is_empty() {
            return Ok(false);
        }
        let find = sqlx::query_as(queries::OUTCOME_FIND_SUSPECTS)
            .bind(json(&tried))
            .bind(self.request.owner.session().as_bytes().to_vec());
        let (suspects, holds): (String, bool) = find.fetch_one(db).await.during(OPERATION)?;
        let suspects: HashSet<i64> = serde_json::from_str(&suspects).during(OPERATION)?;
        for candidate in candidates {
            candidate.suspect = suspects.contains(&candidate.seq.0);
        }
        Ok(holds)
    }

    /// Leases what can run and dead-letters what cannot.
    async fn take(
        &mut self,
        db: &mut SqliteConnection,
        picked: Vec<Picked>,
        moves: &mut Moves,
        exchanged: &mut Exchanged,
    ) -> Result<(), StoreError> {
        let mut envelopes = self.envelopes(db, &picked).await?;
        let mut members = Vec::with_capacity(picked.len());
        for Picked { slot, due_at, lane_index } in picked {
            moves.leaving(&slot, Status::Pending);
            let envelope = envelopes.remove(&slot.seq);
            let id = envelope.as_ref().map_or_else(|| id_of_place(slot.seq), |read| read.value.id);
            let exhausted = slot.attempt >= self.request.lanes[lane_index].attempts_max;
            let envelope = envelope.filter(|read| read.defect.is_none());
            let Some(Read { value: envelope, .. }) = envelope.filter(|_| !exhausted) else {
                let reason = if exhausted { Reason::Crashed } else { Reason::Undecodable };
                moves.end(&slot, Status::Pending, Status::DeadLettered, Some(reason), None);
                exchanged.refused.push(id);
                continue;
            };
            let slot = slot.with(slot.attempt().leased());
            let lease = self.token(db, exchanged).await?;
            if slot.key_policy == UNTIL_STARTED {
                moves.free_key(slot.seq);
            }
            moves.count(slot.lane, Status::Leased, 1);
            members.push(slot.seq);
            exchanged.leased.push(Leased { envelope, attempt: slot.attempt(), lease, due_at });
        }
        // Before they leave their place: the statement takes them from there.
        if let (Some(token), false) = (self.token, members.is_empty()) {
            let insert =
                sqlx::query(queries::LEASE_MEMBER_INSERT).bind(json(&members)).bind(token.generation);
            insert.execute(&mut *db).await.during(OPERATION)?;
        }
        moves::write(moves, db, OPERATION).await
    }

    async fn envelopes(
        &self,
        db: &mut SqliteConnection,
        picked: &[Picked],
    ) -> Result<HashMap<i64, Read<Envelope>>, StoreError> {
        let seqs: Vec<_> = picked.iter().map(|picked| picked.slot.seq).collect();
        let lanes: HashMap<_, _> = picked.iter().map(|picked| (picked.slot.seq, picked.lane_index)).collect();
        let find = sqlx::query(queries::MESSAGE_CLAIM).bind(json(&seqs));
        let rows = find.fetch_all(db).await.during(OPERATION)?;
        let envelopes = rows.iter().filter_map(|row| {
            let row = Row(row);
            let mut row = RowReader::new(&row);
            let seq = row.integer(0)?;
            let lane = &self.request.lanes[*lanes.get(&seq)?];
            let envelope = row.envelope(lane.endpoint.clone(), lane.contract.clone());
            Some((seq, row.done(envelope)))
        });
        Ok(envelopes.collect())
    }

    /// The fence of this claim, made when it is first needed.
    async fn token(
        &mut self,
        db: &mut SqliteConnection,
        exchanged: &mut Exchanged,
    ) -> Result<LeaseToken, StoreError> {
        if let Some(token) = self.token {
            return Ok(token);
        }
        let owner = &self.request.owner;
        let until = later(self.now, self.request.duration);
        let insert = sqlx::query_scalar(queries::LEASE_INSERT)
            .bind(owner.session().as_bytes().to_vec())
            .bind(owner.label())
            .bind(micros(until));
        let generation = insert.fetch_one(db).await.during(OPERATION)?;
        exchanged.until = Some(instant(micros(until)));
        Ok(*self.token.insert(LeaseToken { owner: owner.session(), generation }))
    }
}
