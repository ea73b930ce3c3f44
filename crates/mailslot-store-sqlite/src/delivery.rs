//! What is remembered of deliveries.

use crate::append::{self, session_row};
use crate::change::slots;
use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::{Row, json};
use crate::store::SqliteStore;
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::moves::{Conclusions, Moves, Placed, identities};
use mailslot_core::store::{
    Claim, Claimed, Concluded, Conclusion, Known, LedgerStore, Lookup, Question, SessionRef,
};
use mailslot_core::stored::{Columns as _, RowReader, earlier, later, micros};
use mailslot_core::{DeliveryIdentity, DeliveryKey, EndpointName, MessageId, StoreError, StoreErrorKind};
use sqlx::SqliteConnection;
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

#[async_trait]
impl LedgerStore for SqliteStore {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        const OPERATION: &str = "look_up";
        Question::check_all(questions)?;
        let now = self.now();
        let mut tx = self.read(OPERATION).await?;
        let keys: Vec<_> =
            questions.iter().map(|one| one.identity.as_ref().map(DeliveryIdentity::key)).collect();
        let asked: Vec<_> = keys.iter().flatten().copied().collect();
        let known = known(&mut tx, &asked, now, OPERATION).await?;
        let sessions: Vec<_> = questions.iter().filter_map(|question| question.session.as_ref()).collect();
        let heads = heads(&mut tx, &sessions, OPERATION).await?;
        let answer = |(question, key): (&Question, Option<DeliveryKey>)| Lookup {
            known: key.and_then(|key| known.get(&key).copied()),
            blocked_by: question.session.as_ref().and_then(|session| heads.get(session).copied()),
        };
        Ok(questions.iter().zip(keys).map(answer).collect())
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        const OPERATION: &str = "conclude";
        Conclusion::check_all(&conclusions)?;
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let now = self.now();
        let keys: Vec<_> = identities(&conclusions).map(DeliveryIdentity::key).collect();
        let known_before = known(&mut tx, &keys, now, OPERATION).await?;
        let mut batch = Conclusions::new(conclusions, &known_before);
        let recorded: Vec<_> = batch.recorded.iter().map(|identity| (identity, None)).collect();
        record(&mut tx, &recorded, now, OPERATION).await?;
        let appended = append::append(&mut tx, batch.groups(), &self.shared.lanes, || now).await?;
        let mut placed = batch.appended(appended.answers, appended.first..);
        place(&mut tx, &mut placed, &mut batch, now, OPERATION).await?;
        let known_after = known(&mut tx, &batch.repeated(), now, OPERATION).await?;
        tx.commit().await.during(OPERATION)?;
        self.shared.lanes.remember(appended.lanes);
        if appended.stored {
            self.wake();
        }
        Ok(batch.finish(&known_after))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        const OPERATION: &str = "claim";
        claim.check()?;
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let now = self.now();
        let (until, key) = (later(now, claim.duration), claim.identity.key());
        let wanted = sqlx::query(queries::DELIVERY_CLAIM)
            .bind(&key.0[..])
            .bind(micros(until))
            .bind(&claim.owner.as_bytes()[..])
            .bind(claim.identity.endpoint().as_str())
            .bind(claim.identity.message_id())
            .bind(micros(now));
        let granted = wanted.execute(&mut *tx).await.during(OPERATION)?.rows_affected() > 0;
        let known = if granted { None } else { known(&mut tx, &[key], now, OPERATION).await?.remove(&key) };
        tx.commit().await.during(OPERATION)?;
        Ok(known.map_or(Claimed::Granted { until }, Claimed::Refused))
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        const OPERATION: &str = "give_up";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let key = identity.key();
        let give_up = sqlx::query(queries::DELIVERY_GIVE_UP).bind(&key.0[..]).bind(&owner.as_bytes()[..]);
        give_up.execute(&mut *tx).await.during(OPERATION)?;
        tx.commit().await.during(OPERATION)
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        const OPERATION: &str = "purge";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let purge = sqlx::query(queries::DELIVERY_PURGE)
            .bind(endpoint.as_str())
            .bind(micros(earlier(self.now(), retention)))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let purged = purge.execute(&mut *tx).await.during(OPERATION)?.rows_affected();
        tx.commit().await.during(OPERATION)?;
        Ok(usize::try_from(purged).unwrap_or(limit))
    }
}

fn bytes(keys: impl Iterator<Item = DeliveryKey>) -> Vec<u8> {
    keys.flat_map(|key| key.0).collect()
}

async fn known(
    db: &mut SqliteConnection,
    keys: &[DeliveryKey],
    now: Timestamp,
    operation: &'static str,
) -> Result<HashMap<DeliveryKey, Known>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let find = sqlx::query(queries::DELIVERY_FIND)
        .bind(json(std::iter::repeat_n(0, keys.len())))
        .bind(bytes(keys.iter().copied()))
        .bind(micros(now));
    let rows = find.fetch_all(db).await.during(operation)?;
    let mut known = HashMap::with_capacity(rows.len());
    for row in &rows {
        let row = Row(row);
        let key = row.integer(0).and_then(|place| keys.get(usize::try_from(place).ok()?));
        known.extend(key.map(|key| (*key, RowReader::new(&row).known(1))));
    }
    Ok(known)
}

async fn heads(
    db: &mut SqliteConnection,
    sessions: &[&SessionRef],
    operation: &'static str,
) -> Result<HashMap<SessionRef, MessageId>, StoreError> {
    if sessions.is_empty() {
        return Ok(HashMap::new());
    }
    let find =
        sqlx::query(queries::SESSION_FIND_HEADS).bind(json(sessions.iter().map(|one| session_row(one))));
    let rows = find.fetch_all(db).await.during(operation)?;
    let head = |row| {
        let row = Row(row);
        let session = *sessions.get(usize::try_from(row.integer(0)?).ok()?)?;
        Some((session.clone(), RowReader::new(&row).other_id(1)?))
    };
    Ok(rows.iter().filter_map(head).collect())
}

/// Records deliveries with the numbers of their messages, if they are stored.
async fn record(
    db: &mut SqliteConnection,
    records: &[(&DeliveryIdentity, Option<i64>)],
    now: Timestamp,
    operation: &'static str,
) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let rows =
        records.iter().map(|(identity, seq)| (seq, identity.endpoint().as_str(), identity.message_id()));
    let record = sqlx::query(queries::DELIVERY_RECORD)
        .bind(json(rows))
        .bind(bytes(records.iter().map(|(identity, _)| identity.key())))
        .bind(micros(now));
    let recorded = record.execute(db).await.during(operation)?.rows_affected();
    if recorded == records.len() as u64 {
        return Ok(());
    }
    // Looked at in this transaction, which has the file for itself.
    Err(StoreError::new(StoreErrorKind::Unexpected, operation, "a delivery was recorded under our eyes"))
}

/// Records in the handler's transaction that a delivery was handled, unless it has come to something before.
pub(crate) async fn record_once(
    db: &mut SqliteConnection,
    identity: &DeliveryIdentity,
    now: Timestamp,
    operation: &'static str,
) -> Result<Concluded, StoreError> {
    let key = identity.key();
    match known(db, &[key], now, operation).await?.remove(&key) {
        Some(known @ (Known::Completed | Known::Stored { .. })) => Ok(Concluded::Known(known)),
        // Success is success, whoever has claimed it.
        None | Some(Known::Claimed { .. }) => {
            record(db, &[(identity, None)], now, operation).await?;
            Ok(Concluded::Recorded)
        }
    }
}

/// Puts what was stored where its handler decided.
async fn place(
    db: &mut SqliteConnection,
    placed: &mut [Placed],
    batch: &mut Conclusions,
    now: Timestamp,
    operation: &'static str,
) -> Result<(), StoreError> {
    if placed.is_empty() {
        return Ok(());
    }
    let recorded: Vec<_> = placed.iter().filter_map(|one| Some((one.identity()?, Some(one.seq)))).collect();
    record(db, &recorded, now, operation).await?;
    let seqs: Vec<_> = placed.iter().map(|one| one.seq).collect();
    let slots: HashMap<_, _> = slots(db, &seqs, operation)
        .await?
        .into_iter()
        .map(|(slot, status)| (slot.seq, (slot, status)))
        .collect();
    let mut moves = Moves::at(now);
    for one in placed {
        let (slot, status) = slots[&one.seq];
        let status = moves.conclude(one, &slot, status);
        batch.answer(one, status);
    }
    moves::finish(&mut moves, db, operation).await
}
