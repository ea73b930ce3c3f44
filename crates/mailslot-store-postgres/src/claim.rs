//! Claiming the long way: with suspects, used-up attempts, keys that are freed, or for one tenant. The claim of most
//! turns is in `exchange.rs`.

use crate::exchange::{CLASSES, Wanted, until};
use crate::leases::Settling;
use crate::link::{Param, Session};
use crate::moves;
use crate::queries;
use mailslot_core::moves::{Due, DueWindow, Moves, Slot, Window};
use mailslot_core::store::{Exchanged, Leased};
use mailslot_core::stored::{Read, RowReader, instant, micros};
use mailslot_core::{Envelope, LeaseToken, StoreError, TenantName};
use std::collections::{HashMap, HashSet};

impl Wanted<'_> {
    /// Claims into `exchanged`, and returns the leased slots. The caller finishes the moves.
    pub(crate) async fn claim(
        &self,
        session: &mut Session<'_>,
        moves: &mut Moves,
        exchanged: &mut Exchanged,
    ) -> Result<Vec<Slot>, StoreError> {
        let mut claimed = Claimed::default();
        // Refused messages make room for others, so the claim goes on until it is full or nothing is due.
        while claimed.slots.len() < self.request.limit {
            let wanted = self.request.limit - claimed.slots.len();
            let (due, held_back) = self.pick(session, moves, wanted).await?;
            exchanged.held_back = held_back;
            let refused = exchanged.refused.len();
            if !due.is_empty() {
                self.take(session, due, moves, exchanged, &mut claimed).await?;
            }
            if exchanged.refused.len() == refused {
                break;
            }
        }
        if claimed.slots.len() < self.request.limit {
            exchanged.next_due = self.next_due(session, moves).await?;
        }
        self.lease(session, moves, claimed, exchanged).await
    }

    /// The first due messages in claim order, and how many were held back.
    async fn pick(
        &self,
        session: &mut Session<'_>,
        moves: &Moves,
        wanted: usize,
    ) -> Result<(Vec<Due>, usize), StoreError> {
        let mut size = wanted;
        loop {
            let mut window = self.window(session, moves, size).await?;
            let holds_suspect = self.mark_suspects(session, &mut window).await?;
            match window.pick(wanted, holds_suspect) {
                Window::Wider(wider) => size = wider,
                Window::Picked { due, held_back } => return Ok((due, held_back)),
            }
        }
    }

    /// At most `size` due messages of each lane and class, locked.
    async fn window(
        &self,
        session: &mut Session<'_>,
        moves: &Moves,
        size: usize,
    ) -> Result<DueWindow, StoreError> {
        let params = vec![
            Param::ints(self.branches.iter().map(|(lane, _)| *lane)),
            Param::ints(self.branches.iter().map(|(_, class)| *class)),
            Param::ints(self.look.since.iter().copied()),
            // Rounded down: what becomes due within this microsecond is not due yet.
            Param::Int(Some(self.request.due_by(moves.now()).as_microsecond())),
            Param::Int(i64::try_from(size).ok()),
            Param::optional_text(self.request.tenant.as_ref().map(TenantName::as_str)),
        ];
        let mut window = DueWindow::new(size);
        for row in session.rows(queries::READY_PICK, params).await? {
            let reader = RowReader::new(&row);
            let branch = usize::try_from(row.int(0)).unwrap_or_default();
            let (lane, priority) = self.branches.get(branch).copied().unwrap_or_default();
            let attempt = reader.attempt(3);
            let slot = Slot {
                seq: row.int(1),
                lane,
                priority,
                generation: attempt.generation,
                attempt: attempt.number,
                session: reader.integer(5),
                key_policy: row.int(6),
            };
            window.push(Due { slot, due_at: instant(row.int(2)), lane_index: branch / CLASSES });
        }
        Ok(window)
    }

    async fn mark_suspects(
        &self,
        session: &mut Session<'_>,
        window: &mut DueWindow,
    ) -> Result<bool, StoreError> {
        let tried = window.tried(self.request);
        if tried.is_empty() {
            return Ok(false);
        }
        let params = vec![
            Param::ints(tried.iter().map(|slot| slot.seq)),
            Param::ints(tried.iter().map(|slot| i64::from(slot.generation))),
            Param::ints(tried.iter().map(|slot| i64::from(slot.attempt))),
        ];
        let rows = session.rows(queries::OUTCOME_FIND_SUSPECTS, params).await?;
        window.mark_suspects(&rows.iter().map(|row| row.int(0)).collect::<HashSet<_>>());
        let owner = vec![Param::Uuid(self.request.owner.session())];
        Ok(session.row(queries::LEASE_HOLDS_SUSPECT, owner).await?.int(0) != 0)
    }

    /// Takes what can run and dead-letters what cannot.
    async fn take(
        &self,
        session: &mut Session<'_>,
        due: Vec<Due>,
        moves: &mut Moves,
        exchanged: &mut Exchanged,
        claimed: &mut Claimed,
    ) -> Result<(), StoreError> {
        let mut envelopes = self.envelopes(session, &due).await?;
        for due in due {
            match moves.claim(&due, envelopes.remove(&due.slot.seq), self.request) {
                Ok((slot, envelope)) => {
                    claimed.slots.push(slot);
                    claimed.envelopes.push((envelope, due));
                }
                Err(refused) => exchanged.refused.push(refused),
            }
        }
        moves::write(session, moves, &Settling::default()).await.map(|_| ())
    }

    async fn envelopes(
        &self,
        session: &mut Session<'_>,
        due: &[Due],
    ) -> Result<HashMap<i64, Read<Envelope>>, StoreError> {
        let lanes: HashMap<_, _> = due.iter().map(|due| (due.slot.seq, due.lane_index)).collect();
        let seqs = vec![Param::ints(due.iter().map(|due| due.slot.seq))];
        let rows = session.rows(queries::MESSAGE_CLAIM, seqs).await?;
        let envelopes = rows.iter().filter_map(|row| {
            let mut reader = RowReader::new(row);
            let seq = reader.integer(0)?;
            let lane = &self.request.lanes[*lanes.get(&seq)?];
            let envelope = reader.envelope(lane.endpoint.clone(), lane.contract.clone());
            Some((seq, reader.done(envelope)))
        });
        Ok(envelopes.collect())
    }

    async fn next_due(
        &self,
        session: &mut Session<'_>,
        moves: &Moves,
    ) -> Result<Option<jiff::Timestamp>, StoreError> {
        let params = vec![
            Param::ints(self.branches.iter().map(|(lane, _)| *lane)),
            Param::ints(self.branches.iter().map(|(_, class)| *class)),
            Param::Int(Some(micros(moves.now()))),
        ];
        let row = session.row(queries::READY_NEXT_DUE, params).await?;
        Ok(RowReader::new(&row).integer(0).map(instant))
    }

    /// Writes the lease of what was taken.
    async fn lease(
        &self,
        session: &mut Session<'_>,
        moves: &Moves,
        claimed: Claimed,
        exchanged: &mut Exchanged,
    ) -> Result<Vec<Slot>, StoreError> {
        let Claimed { slots, envelopes } = claimed;
        if slots.is_empty() {
            return Ok(slots);
        }
        let owner = &self.request.owner;
        let until = until(self.request, moves.now());
        let params = vec![
            Param::Uuid(owner.session()),
            Param::text(owner.label()),
            Param::Int(Some(micros(until))),
            Param::ints(slots.iter().map(|slot| slot.seq)),
            Param::ints(slots.iter().map(|slot| i64::from(slot.generation))),
            Param::ints(slots.iter().map(|slot| i64::from(slot.attempt))),
            Param::Ints(slots.iter().map(|slot| slot.session).collect()),
        ];
        let generation = session.row(queries::LEASE_INSERT, params).await?.int(0);
        let lease = LeaseToken { owner: owner.session(), generation };
        exchanged.until = Some(until);
        let leased = envelopes.into_iter().zip(&slots).map(|((envelope, due), slot)| Leased {
            envelope,
            attempt: slot.attempt(),
            lease,
            due_at: due.due_at,
        });
        exchanged.leased.extend(leased);
        Ok(slots)
    }
}

/// What a claim has so far.
#[derive(Debug, Default)]
struct Claimed {
    slots: Vec<Slot>,
    envelopes: Vec<(Envelope, Due)>,
}
