//! The accept of many callers at once: one statement and one commit, however many messages, if each stands on its own.

use crate::error::During;
use crate::insert::{content_type, headers, lane, ledger_keys, tracestate};
use jiff::Timestamp;
use mailslot_core::store::{AppendGroup, AppendPlan, Appended, Planned, plan_append};
use mailslot_core::stored::{LaneKey, code_of_policy, instant, micros};
use mailslot_core::{LedgerKey, NewMessage, Receipt, StoreError, Visibility};
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Postgres, Row as _, SqlStr};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Most messages in one statement, and most bytes of their payloads: bounds the memory of both sides.
const ROWS_MAX: usize = 2_000;
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Whether the statement can take the groups: one message each, in no session, with at most one key.
pub(crate) fn takes(groups: &[AppendGroup]) -> bool {
    let mut bytes = 0;
    let plain = |group: &AppendGroup| match &group.messages[..] {
        [message] => {
            bytes += message.payload.bytes().len();
            let has_both = message.id_supplied && message.metadata.idempotency.key().is_some();
            message.metadata.session.is_none() && !has_both
        }
        _ => false,
    };
    groups.len() <= ROWS_MAX && groups.iter().all(plain) && bytes <= BYTES_MAX
}

/// What the statement did.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// An answer for each group, or `None` if its key was known: it has to be looked up.
    pub(crate) answers: Vec<Option<Vec<Appended>>>,
    /// Whether anything is new.
    pub(crate) stored: bool,
}

/// Appends in a statement of its own.
pub(crate) async fn accept(
    db: &mut PgConnection,
    (sql, persistent): (SqlStr, bool),
    groups: &[AppendGroup],
    lanes: &HashMap<LaneKey, i64>,
    time: Option<i64>,
) -> Result<Accepted, StoreError> {
    let (plan, columns) = plan(groups, lanes);
    let wanted = columns.id.len();
    let statement = columns.bind(sqlx::query(sql).persistent(persistent).bind(time));
    let row = statement.fetch_one(db).await.during("append")?;
    let now = instant(row.try_get(0).during("append")?);
    let known: Vec<i64> = row.try_get(1).during("append")?;
    let stored = known.len() < wanted;
    Ok(Accepted { answers: answers(plan, now, &known), stored })
}

/// What to store. What is known is found by the statement; what repeats within the batch is found here.
fn plan<'g>(groups: &'g [AppendGroup], lanes: &HashMap<LaneKey, i64>) -> (AppendPlan, Columns<'g>) {
    let messages = groups.iter().flat_map(|group| &group.messages);
    let keyed: Vec<_> = messages.map(|message| (message, ledger_keys(message).next())).collect();
    let mut seen = HashSet::with_capacity(keyed.len());
    let repeats = !keyed.iter().filter_map(|(_, key)| *key).all(|(_, key)| seen.insert(key));
    if !repeats {
        return (AppendPlan::all_new(groups, Timestamp::UNIX_EPOCH), Columns::of(keyed, lanes));
    }
    let plan = plan_append(groups, &HashMap::new(), Timestamp::UNIX_EPOCH, |_| u64::MAX);
    let is_new = plan.groups.iter().flatten().map(|planned| matches!(planned, Planned::Insert(_)));
    let new = keyed.into_iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(keyed, _)| keyed);
    let columns = Columns::of(new.collect(), lanes);
    (plan, columns)
}

/// A message with the kind and the value of its ledger key.
type Keyed<'m> = (&'m NewMessage, Option<(i64, LedgerKey)>);

/// The answers of a plan, accepted at `now`; `known` are the places (from 1) among the new messages that were not new.
fn answers(plan: AppendPlan, now: Timestamp, known: &[i64]) -> Vec<Option<Vec<Appended>>> {
    let known: HashSet<i64> = known.iter().copied().collect();
    let mut place = 0;
    let mut answer = |planned: Planned| match planned {
        Planned::Insert(receipt) => {
            place += 1;
            (!known.contains(&place)).then_some(Appended::Stored(Receipt { accepted_at: now, ..receipt }))
        }
        // It repeats one of this batch. If any was known, that one may have been, so all of these are looked up.
        Planned::Answer(_) if !known.is_empty() => None,
        Planned::Answer(Appended::Stored(receipt)) => {
            Some(Appended::Stored(Receipt { accepted_at: now, ..receipt }))
        }
        Planned::Answer(answer) => Some(answer),
    };
    plan.groups.into_iter().map(|group| group.into_iter().map(&mut answer).collect()).collect()
}

/// The groups that have no answer yet, with the answers of all.
pub(crate) fn open_groups(
    groups: Vec<AppendGroup>,
    answers: Vec<Option<Vec<Appended>>>,
) -> (Vec<AppendGroup>, Vec<Option<Vec<Appended>>>) {
    let open = groups.into_iter().zip(&answers).filter(|(_, answer)| answer.is_none());
    (open.map(|(group, _)| group).collect(), answers)
}

/// Fills the open answers in, in order.
pub(crate) fn join(answers: Vec<Option<Vec<Appended>>>, found: Vec<Vec<Appended>>) -> Vec<Vec<Appended>> {
    let mut found = found.into_iter();
    answers.into_iter().map(|answer| answer.or_else(|| found.next()).unwrap_or_default()).collect()
}

/// The parameters, column by column.
#[derive(Debug, Default)]
struct Columns<'m> {
    id: Vec<Uuid>,
    id_supplied: Vec<bool>,
    lane: Vec<i32>,
    priority: Vec<i16>,
    key_policy: Vec<i16>,
    not_before: Vec<i64>,
    delay: Vec<i64>,
    content_type: Vec<Option<&'m str>>,
    tenant: Vec<Option<&'m str>>,
    idempotency_key: Vec<Option<&'m str>>,
    traceparent: Vec<Option<&'m str>>,
    tracestate: Vec<Option<&'m str>>,
    correlation: Vec<Option<&'m str>>,
    causation: Vec<Option<&'m str>>,
    headers: Vec<Option<String>>,
    payload: Vec<&'m [u8]>,
    key: Vec<Option<Vec<u8>>>,
    fingerprint: Vec<Option<Vec<u8>>>,
    kind: Vec<Option<i16>>,
}

impl<'m> Columns<'m> {
    fn of(messages: Vec<Keyed<'m>>, lanes: &HashMap<LaneKey, i64>) -> Self {
        let mut columns = Self::default();
        // Most are of the same lane as the one before.
        let mut last = None;
        for keyed in messages {
            let names = keyed.0.lane();
            let number = match last {
                Some((known, number)) if known == names => number,
                _ => lane(lanes, keyed.0),
            };
            last = Some((names, number));
            columns.push(keyed, number);
        }
        columns
    }

    fn push(&mut self, (message, key): Keyed<'m>, lane: i64) {
        let metadata = &message.metadata;
        self.id.push(message.id.as_uuid());
        self.id_supplied.push(message.id_supplied);
        self.lane.push(narrow(lane));
        self.priority.push(i16::from(metadata.priority.rank()));
        self.key_policy.push(narrow(code_of_policy(metadata.idempotency.policy())));
        let (not_before, delay) = due(metadata.visibility);
        self.not_before.push(not_before);
        self.delay.push(delay);
        self.content_type.push(content_type(message));
        self.tenant.push(metadata.tenant.as_ref().map(mailslot_core::TenantName::as_str));
        self.idempotency_key.push(metadata.idempotency.key().map(mailslot_core::IdempotencyKey::as_str));
        self.traceparent.push(metadata.trace.context().map(mailslot_core::TraceContext::traceparent));
        self.tracestate.push(tracestate(message));
        self.correlation.push(metadata.trace.correlation().map(mailslot_core::CorrelationId::as_str));
        self.causation.push(metadata.trace.causation().map(mailslot_core::CausationId::as_str));
        self.headers.push(headers(message));
        self.payload.push(message.payload.bytes());
        self.key.push(key.map(|(_, key)| key.0.to_vec()));
        self.fingerprint.push(key.map(|_| message.fingerprint().0.to_vec()));
        self.kind.push(key.map(|(kind, _)| narrow(kind)));
    }

    fn bind(
        self,
        statement: sqlx::query::Query<'_, Postgres, PgArguments>,
    ) -> sqlx::query::Query<'_, Postgres, PgArguments> {
        statement
            .bind(self.id)
            .bind(self.id_supplied)
            .bind(self.lane)
            .bind(self.priority)
            .bind(self.key_policy)
            .bind(self.not_before)
            .bind(self.delay)
            .bind(some(self.content_type))
            .bind(some(self.tenant))
            .bind(some(self.idempotency_key))
            .bind(some(self.traceparent))
            .bind(some(self.tracestate))
            .bind(some(self.correlation))
            .bind(some(self.causation))
            .bind(some(self.headers))
            .bind(self.payload)
            .bind(some(self.key))
            .bind(some(self.fingerprint))
            .bind(some(self.kind))
            .bind(micros(Timestamp::MAX))
    }
}

/// A column without any value is sent without elements, which `unnest` fills up: neither side has to walk it.
fn some<T>(column: Vec<Option<T>>) -> Vec<Option<T>> {
    if column.iter().all(Option::is_none) { Vec::new() } else { column }
}

/// Not before which time, and how long after the accept, in microseconds.
fn due(visibility: Visibility) -> (i64, i64) {
    match visibility {
        Visibility::Immediate => (0, 0),
        Visibility::At(at) => (micros(at), 0),
        Visibility::After(delay) => {
            // A part of a microsecond counts as one, as everywhere: nothing becomes due too early.
            let nanos = delay.as_nanos().clamp(0, i128::from(micros(Timestamp::MAX)) * 1000);
            (0, i64::try_from((nanos + 999) / 1000).unwrap_or(i64::MAX))
        }
    }
}

fn narrow<T: TryFrom<i64>>(number: i64) -> T {
    T::try_from(number).unwrap_or_else(|_| unreachable!("lanes, codes and classes are small numbers"))
}
