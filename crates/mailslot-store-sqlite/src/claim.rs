//! Claiming: pick by the core's rule, refuse what cannot run, lease the rest.

use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::{Row, json};
use jiff::Timestamp;
use mailslot_core::moves::{Due, DueWindow, Moves, Slot, Window};
use mailslot_core::store::{Exchanged, LeaseRequest, Leased};
use mailslot_core::stored::{Read, RowReader, instant, later, micros};
use mailslot_core::{Envelope, LeaseToken, StoreError, TenantName};
use serde::Deserialize;
use sqlx::SqliteConnection;
use std::collections::HashMap;

const OPERATION: &str = "exchange";

/// A due message of `ready/pick.sql`.
#[derive(Debug, Deserialize)]
struct DueRow(i64, i64, u32, u32, Option<i64>, i64);

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
        let lanes = request.lanes.iter();
        let lanes = lanes.map(|lane| (&lane.endpoint, lane.contract.name(), lane.contract.version()));
        Self { request, lanes: json(lanes), now, due_until: request.due_by(now), token: None }
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
    async fn pick(&self, db: &mut SqliteConnection, wanted: usize) -> Result<(Vec<Due>, usize), StoreError> {
        let mut window = wanted;
        loop {
            let mut due = self.due(db, window).await?;
            let holds_suspect = self.mark_suspects(db, &mut due).await?;
            match due.pick(wanted, holds_suspect) {
                Window::Wider(wider) => window = wider,
                Window::Picked { due, held_back } => return Ok((due, held_back)),
            }
        }
    }

    /// At most `window` due messages of each lane and class.
    async fn due(&self, db: &mut SqliteConnection, window: usize) -> Result<DueWindow, StoreError> {
        let find = sqlx::query_as(queries::READY_PICK)
            .bind(&self.lanes)
            // Rounded down: what becomes due within this microsecond is not due yet.
            .bind(self.due_until.as_microsecond())
            .bind(i64::try_from(window).unwrap_or(i64::MAX))
            .bind(self.request.tenant.as_ref().map(TenantName::as_str));
        let rows: Vec<(i64, i64, i64, String)> = find.fetch_all(db).await.during(OPERATION)?;
        let mut found = DueWindow::new(window);
        for (lane_index, lane, priority, due) in rows {
            let lane_index = usize::try_from(lane_index).unwrap_or_default();
            let due: Vec<DueRow> = serde_json::from_str(&due).during(OPERATION)?;
            for DueRow(seq, due_at, generation, attempt, session, key_policy) in due {
                let slot = Slot { seq, lane, priority, generation, attempt, session, key_policy };
                found.push(Due { slot, due_at: instant(due_at), lane_index });
            }
        }
        Ok(found)
    }

    /// Marks the messages whose last leases ran out, and says whether the owner holds such a message.
    async fn mark_suspects(
        &self,
        db: &mut SqliteConnection,
        due: &mut DueWindow,
    ) -> Result<bool, StoreError> {
        let tried = due.tried(self.request);
        if tried.is_empty() {
            return Ok(false);
        }
        let find = sqlx::query_as(queries::OUTCOME_FIND_SUSPECTS)
            .bind(json(tried.iter().map(|slot| (slot.seq, slot.generation, slot.attempt))))
            .bind(self.request.owner.session().as_bytes().to_vec());
        let (suspects, holds): (String, bool) = find.fetch_one(db).await.during(OPERATION)?;
        due.mark_suspects(&serde_json::from_str(&suspects).during(OPERATION)?);
        Ok(holds)
    }

    /// Leases what can run and dead-letters what cannot.
    async fn take(
        &mut self,
        db: &mut SqliteConnection,
        picked: Vec<Due>,
        moves: &mut Moves,
        exchanged: &mut Exchanged,
    ) -> Result<(), StoreError> {
        let mut envelopes = self.envelopes(db, &picked).await?;
        let mut members = Vec::with_capacity(picked.len());
        for due in picked {
            match moves.claim(&due, envelopes.remove(&due.slot.seq), self.request) {
                Err(refused) => exchanged.refused.push(refused),
                Ok((slot, envelope)) => {
                    let (attempt, lease) = (slot.attempt(), self.token(db, exchanged).await?);
                    members.push(slot.seq);
                    exchanged.leased.push(Leased { envelope, attempt, lease, due_at: due.due_at });
                }
            }
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
        picked: &[Due],
    ) -> Result<HashMap<i64, Read<Envelope>>, StoreError> {
        let lanes: HashMap<_, _> = picked.iter().map(|due| (due.slot.seq, due.lane_index)).collect();
        let seqs = json(picked.iter().map(|due| due.slot.seq));
        let find = sqlx::query(queries::MESSAGE_CLAIM).bind(seqs);
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
