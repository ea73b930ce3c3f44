//! What is remembered of deliveries.

use crate::append::{self, AppendResult, RACES_MAX, session_columns};
use crate::change::slots;
use crate::error::{is_missing_partition, is_race};
use crate::keeper;
use crate::leases::Settling;
use crate::link::{Param, Session};
use crate::moves;
use crate::queries;
use crate::store::PostgresStore;
use async_trait::async_trait;
use mailslot_core::moves::{Conclusions, Moves, Placed, identities};
use mailslot_core::store::{
    Claim, Claimed, Concluded, Conclusion, Known, LedgerStore, Lookup, Question, SessionRef,
};
use mailslot_core::stored::{LaneKey, RowReader, instant};
use mailslot_core::{DeliveryIdentity, DeliveryKey, EndpointName, MessageId, StoreError};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

const CONCLUDE: &str = "conclude";

/// How many deliveries a statement lets go with a partition.
const STRETCH: i64 = 1_000;

#[async_trait]
impl LedgerStore for PostgresStore {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        Question::check_all(questions)?;
        self.within("look_up", self.look_up_bounded(questions)).await
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        Conclusion::check_all(&conclusions)?;
        self.within(CONCLUDE, self.conclude_bounded(conclusions)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        claim.check()?;
        self.within("claim", self.claim_bounded(claim)).await
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        let keys = [identity.key()];
        let params = vec![blobs(&keys), Param::Uuid(owner)];
        self.within("give_up", self.execute_alone("give_up", queries::DELIVERY_GIVE_UP, params))
            .await
            .map(|_| ())
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let params = vec![
            Param::text(endpoint.as_str()),
            Param::Int(Some(i64::try_from(retention.as_micros()).unwrap_or(i64::MAX))),
            Param::Int(i64::try_from(limit).ok()),
            self.time(),
        ];
        let purged =
            self.within("purge", self.execute_alone("purge", queries::DELIVERY_PURGE, params)).await?;
        Ok(usize::try_from(purged).unwrap_or(limit))
    }
}

impl PostgresStore {
    /// Runs a statement that commits by itself.
    async fn execute_alone(
        &self,
        operation: &'static str,
        query: queries::Query,
        params: Vec<Param<'_>>,
    ) -> Result<u64, StoreError> {
        let mut lent = self.shared.pinned.single(operation).await?;
        let done = {
            let mut link = lent.link();
            self.shared.session(&mut link, operation).execute(query, params).await?
        };
        lent.finish().await?;
        Ok(done)
    }

    async fn look_up_bounded(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        const OPERATION: &str = "look_up";
        let keys: Vec<_> =
            questions.iter().map(|one| one.identity.as_ref().map(DeliveryIdentity::key)).collect();
        let asked: Vec<_> = keys.iter().flatten().copied().collect();
        let sessions: Vec<_> = questions.iter().filter_map(|question| question.session.as_ref()).collect();
        let mut lent = self.shared.pinned.single(OPERATION).await?;
        let (known, heads) = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, OPERATION);
            look_up(&mut session, &asked, &sessions, self.time()).await?
        };
        lent.finish().await?;
        let answer = |(question, key): (&Question, Option<DeliveryKey>)| Lookup {
            known: key.and_then(|key| known.get(&key).copied()),
            blocked_by: question.session.as_ref().and_then(|session| heads.get(session).copied()),
        };
        Ok(questions.iter().zip(keys).map(answer).collect())
    }

    async fn claim_bounded(&self, claim: Claim) -> Result<Claimed, StoreError> {
        const OPERATION: &str = "claim";
        let keys = [claim.identity.key()];
        for _ in 0..RACES_MAX {
            let params = vec![
                blobs(&keys),
                Param::Uuid(claim.owner),
                Param::Int(i64::try_from(claim.duration.as_micros()).ok()),
                Param::text(claim.identity.endpoint().as_str()),
                Param::text(claim.identity.message_id()),
                self.time(),
            ];
            let mut lent = self.shared.pinned.single(OPERATION).await?;
            let (granted, known) = {
                let mut link = lent.link();
                let mut session = self.shared.session(&mut link, OPERATION);
                let granted =
                    session.rows(queries::DELIVERY_CLAIM, params).await?.first().map(|row| row.int(0));
                let known = look_up(&mut session, &keys, &[], self.time()).await?.0.remove(&keys[0]);
                (granted, known)
            };
            lent.finish().await?;
            match (granted, known) {
                (Some(until), _) => return Ok(Claimed::Granted { until: instant(until) }),
                (None, Some(known)) => return Ok(Claimed::Refused(known)),
                // It was given up or is over since then.
                (None, None) => {}
            }
        }
        Err(moves::overtaken(OPERATION))
    }

    async fn conclude_bounded(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        if conclusions.iter().all(|conclusion| matches!(conclusion, Conclusion::Handled(_)))
            && let Some(concluded) = self.record_handled(&conclusions).await?
        {
            return Ok(concluded);
        }
        for _ in 0..RACES_MAX {
            let mut lent = self.shared.pinned.begin(CONCLUDE).await?;
            let tried = {
                let mut link = lent.link();
                let mut session = self.shared.session(&mut link, CONCLUDE);
                self.try_to_conclude(&mut session, conclusions.clone()).await
            };
            match tried {
                Ok(Some((concluded, lanes))) => {
                    lent.finish().await?;
                    self.shared.lanes.remember(lanes);
                    self.wake();
                    return Ok(concluded);
                }
                Ok(None) => lent.roll_back().await?,
                Err(error) if is_race(&error) => lent.roll_back().await?,
                Err(error) if is_missing_partition(&error) => {
                    lent.roll_back().await?;
                    keeper::provide_all(&self.shared).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(moves::overtaken(CONCLUDE))
    }

    /// Records successes, in one statement. `None`: some are known, which needs a closer look. What was recorded stays.
    async fn record_handled(&self, conclusions: &[Conclusion]) -> Result<Option<Vec<Concluded>>, StoreError> {
        let mut identities: Vec<_> = identities(conclusions).collect();
        identities.sort_unstable();
        identities.dedup();
        let mut lent = self.shared.pinned.single(CONCLUDE).await?;
        let recorded = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, CONCLUDE);
            record(&mut session, identities.iter().map(|identity| (*identity, None)), self.time()).await?
        };
        lent.finish().await?;
        Ok((recorded == identities.len()).then(|| vec![Concluded::Recorded; conclusions.len()]))
    }

    /// `None`: somebody else was faster with one of the deliveries.
    async fn try_to_conclude(
        &self,
        session: &mut Session<'_>,
        conclusions: Vec<Conclusion>,
    ) -> Result<Option<(Vec<Concluded>, HashMap<LaneKey, i64>)>, StoreError> {
        let keys: Vec<_> = identities(&conclusions).map(DeliveryIdentity::key).collect();
        let (known, _) = look_up(session, &keys, &[], self.time()).await?;
        let mut batch = Conclusions::new(conclusions, &known);
        let appended = append::append(session, &batch.groups(), &self.shared.lanes, self.time()).await?;
        let Some(AppendResult { answers, lanes, seqs, .. }) = appended else { return Ok(None) };
        let mut placed = batch.appended(answers, seqs);
        let handled = batch.recorded.iter().map(|identity| (identity, None));
        let stored = placed.iter().filter_map(|one| Some((one.identity()?, Some(one.seq))));
        let records: Vec<_> = handled.chain(stored).collect();
        let wanted = records.len();
        if record(session, records.into_iter(), self.time()).await? < wanted {
            return Ok(None);
        }
        place(session, &mut placed, &mut batch, self.time()).await?;
        let (known, _) = look_up(session, &batch.repeated(), &[], self.time()).await?;
        Ok(Some((batch.finish(&known), lanes)))
    }

    /// Lets go of the messages of a partition that is to be dropped, stretch by stretch.
    pub(crate) async fn let_deliveries_go(&self, (lower, upper): (i64, i64)) -> Result<(), StoreError> {
        const OPERATION: &str = "retain";
        loop {
            let mut lent = self.shared.free.begin(OPERATION).await?;
            let gone = {
                let mut link = lent.link();
                let mut session = self.shared.session(&mut link, OPERATION);
                let stretch = [lower, upper, STRETCH].map(|number| Param::Int(Some(number)));
                let rows = session.rows(queries::DELIVERY_FIND_STORED, stretch.into()).await?;
                let seqs: Vec<_> = rows.iter().map(|row| row.int(0)).collect();
                message_goes(&mut session, &seqs).await?;
                seqs.len()
            };
            lent.finish().await?;
            if gone == 0 {
                return Ok(());
            }
        }
    }
}

/// Messages go: what was handled stays known, and anything else is as if it had never come.
pub(crate) async fn message_goes(session: &mut Session<'_>, seqs: &[i64]) -> Result<(), StoreError> {
    for statement in [queries::DELIVERY_KEEP, queries::DELIVERY_FORGET] {
        session.execute(statement, vec![Param::ints(seqs.iter().copied())]).await?;
    }
    Ok(())
}

fn blobs(keys: &[DeliveryKey]) -> Param<'_> {
    Param::Blobs(keys.iter().map(|key| Cow::Borrowed(&key.0[..])).collect())
}

/// What is known of deliveries, and the heads of sessions.
type Found = (HashMap<DeliveryKey, Known>, HashMap<SessionRef, MessageId>);

async fn look_up(
    session: &mut Session<'_>,
    keys: &[DeliveryKey],
    sessions: &[&SessionRef],
    time: Param<'static>,
) -> Result<Found, StoreError> {
    let (mut known, mut heads) = (HashMap::new(), HashMap::new());
    if keys.is_empty() && sessions.is_empty() {
        return Ok((known, heads));
    }
    let mut params = vec![blobs(keys), time];
    params.extend(session_columns(sessions.iter().copied()));
    for row in session.rows(queries::DELIVERY_LOOK_UP, params).await? {
        let place = usize::try_from(row.int(1)).unwrap_or(usize::MAX);
        let mut reader = RowReader::new(&row);
        if row.int(0) == 0 {
            known.extend(keys.get(place).map(|key| (*key, reader.known(2))));
        } else if let (Some(session), Some(head)) = (sessions.get(place), reader.other_id(4)) {
            heads.insert((*session).clone(), head);
        }
    }
    Ok((known, heads))
}

/// Records deliveries with the numbers of their messages, if they are stored. Returns how many were not known.
async fn record<'r>(
    session: &mut Session<'_>,
    records: impl Iterator<Item = (&'r DeliveryIdentity, Option<i64>)>,
    time: Param<'static>,
) -> Result<usize, StoreError> {
    let records: Vec<_> = records.collect();
    if records.is_empty() {
        return Ok(0);
    }
    let keys: Vec<_> = records.iter().map(|(identity, _)| identity.key()).collect();
    let params = vec![
        time,
        blobs(&keys),
        Param::Ints(records.iter().map(|(_, seq)| *seq).collect()),
        Param::texts(records.iter().map(|(identity, _)| identity.endpoint().as_str())),
        Param::texts(records.iter().map(|(identity, _)| identity.message_id())),
    ];
    Ok(session.rows(queries::DELIVERY_RECORD, params).await?.len())
}

/// Records in the handler's transaction that a delivery was handled, unless it has come to something before. Who records it
/// at the same time is waited for.
pub(crate) async fn record_once(
    session: &mut Session<'_>,
    identity: &DeliveryIdentity,
    time: Param<'static>,
) -> Result<Concluded, StoreError> {
    if record(session, std::iter::once((identity, None)), time.clone()).await? > 0 {
        return Ok(Concluded::Recorded);
    }
    let key = identity.key();
    let (mut known, _) = look_up(session, &[key], &[], time).await?;
    // Gone again since then: the handler's writes are rolled back, and a redelivery finds out.
    known.remove(&key).map(Concluded::Known).ok_or_else(|| moves::overtaken("record_and_commit"))
}

/// Puts what was stored where its handler decided.
async fn place(
    session: &mut Session<'_>,
    placed: &mut [Placed],
    batch: &mut Conclusions,
    time: Param<'static>,
) -> Result<(), StoreError> {
    if placed.is_empty() {
        return Ok(());
    }
    let seqs: Vec<_> = placed.iter().map(|one| one.seq).collect();
    let slots: HashMap<_, _> =
        slots(session, &seqs).await?.into_iter().map(|(slot, status)| (slot.seq, (slot, status))).collect();
    let mut moves = Moves::at(instant(session.row(queries::CLOCK_READ, vec![time]).await?.int(0)));
    for one in placed {
        let (slot, status) = slots[&one.seq];
        let status = moves.conclude(one, &slot, status);
        batch.answer(one, status);
    }
    moves::finish(session, &mut moves, &Settling::default()).await.map(|_| ())
}
