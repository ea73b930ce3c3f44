//! Accepting with everything that an accept can need: groups that stand or fall together, sessions, two keys for one
//! message, and transactions of the caller's on any driver. The plain accept of many callers is in `accept.rs`.

use crate::insert::Batch;
use crate::lanes;
use crate::link::{Param, Row, Session};
use crate::queries;
use mailslot_core::limits::PARKED_PER_SESSION_MAX;
use mailslot_core::moves::Sessions;
use mailslot_core::store::{AppendGroup, Appended, LedgerEntry, SessionRef, plan_append};
use mailslot_core::stored::{LaneCache, LaneKey, RowReader, instant};
use mailslot_core::{LedgerKey, NewMessage, StoreError, TenantName};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// How often an append starts anew because other accepts took its keys between its look and its insert.
pub(crate) const RACES_MAX: u32 = 8;

/// What an append did.
#[derive(Debug)]
pub(crate) struct AppendResult {
    pub(crate) answers: Vec<Vec<Appended>>,
    /// Lanes that may be remembered once the transaction is committed.
    pub(crate) lanes: HashMap<LaneKey, i64>,
    /// Whether anything is new.
    pub(crate) stored: bool,
    /// The numbers of the messages that are new, in order.
    pub(crate) seqs: Vec<i64>,
}

/// Appends in the transaction that the session is in. `None`: another accept took a key meanwhile; roll back to where
/// this one began and try again, and its message will be seen.
pub(crate) async fn append(
    session: &mut Session<'_>,
    groups: &[AppendGroup],
    cache: &LaneCache,
    time: Param<'static>,
) -> Result<Option<AppendResult>, StoreError> {
    let lanes = lanes::number(session, messages(groups).map(NewMessage::lane), cache).await?;
    // Locked before the numbers are taken, so that the order of a session is that of its numbers.
    let locked = lock_sessions(session, groups).await?;
    let known = known(session, groups).await?;
    let now = instant(session.row(queries::CLOCK_READ, vec![time]).await?.int(0));
    let plan = plan_append(groups, &known, now, |message| locked.sessions.room(message));
    let messages = plan.new_messages(groups);
    let stored = !messages.is_empty();
    let mut seqs = Vec::new();
    if stored {
        seqs = reserve(session, messages.len()).await?;
        let batch = Batch { now, seqs: seqs.clone(), messages, lanes: &lanes };
        if !batch.insert(session, locked.sessions).await? {
            return Ok(None);
        }
    }
    if !locked.made.is_empty() {
        session.execute(queries::SESSION_DELETE_HEADLESS, vec![Param::ints(locked.made)]).await?;
    }
    Ok(Some(AppendResult { answers: plan.into_answers(), lanes, stored, seqs }))
}

fn messages(groups: &[AppendGroup]) -> impl Iterator<Item = &NewMessage> {
    groups.iter().flat_map(|group| &group.messages)
}

async fn reserve(session: &mut Session<'_>, messages: usize) -> Result<Vec<i64>, StoreError> {
    let count = i64::try_from(messages).expect("an append is bounded far below");
    let rows = session.rows(queries::MESSAGE_RESERVE, vec![Param::Int(Some(count))]).await?;
    Ok(rows.iter().map(|row| row.int(0)).collect())
}

/// What the ledger knows of the batch's keys.
async fn known(
    session: &mut Session<'_>,
    groups: &[AppendGroup],
) -> Result<HashMap<LedgerKey, LedgerEntry>, StoreError> {
    let keys: Vec<LedgerKey> = messages(groups).flat_map(NewMessage::ledger_keys).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let blobs = Param::Blobs(keys.iter().map(|key| Cow::Borrowed(&key.0[..])).collect());
    let rows = session.rows(queries::LEDGER_FIND, vec![blobs]).await?;
    let entry = |row| Some((*keys.get(place(row)?)?, RowReader::new(row).ledger_entry(1)));
    Ok(rows.iter().filter_map(entry).collect())
}

/// The place in an array that a row is about; SQL counts from 1.
pub(crate) fn place(row: &Row) -> Option<usize> {
    usize::try_from(row.int(0)).ok()?.checked_sub(1)
}

/// The sessions of a batch, locked.
#[derive(Debug, Default)]
struct Locked {
    /// Those that have a head.
    sessions: Sessions,
    /// The numbers of those that were made here, for which heads may come.
    made: Vec<i64>,
}

async fn lock_sessions(session: &mut Session<'_>, groups: &[AppendGroup]) -> Result<Locked, StoreError> {
    let wanted: HashSet<_> = messages(groups).filter_map(SessionRef::of).collect();
    if wanted.is_empty() {
        return Ok(Locked::default());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    session.execute(queries::SESSION_LOCK, session_columns(wanted.iter())).await?;
    let mut find = session_columns(wanted.iter());
    find.push(Param::Int(i64::try_from(PARKED_PER_SESSION_MAX).ok()));
    let rows = session.rows(queries::SESSION_FIND, find).await?;
    let (old, new): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.int(2) != 0);
    let sessions = old
        .into_iter()
        .filter_map(|row| Some((wanted.get(place(row)?)?.clone(), (row.int(1), row.int(3).unsigned_abs()))));
    let made = new.into_iter().map(|row| row.int(1)).collect();
    Ok(Locked { sessions: sessions.collect(), made })
}

/// Endpoint, tenant or nothing, key.
pub(crate) fn session_columns<'s>(sessions: impl Iterator<Item = &'s SessionRef> + Clone) -> Vec<Param<'s>> {
    let texts = |part: fn(&SessionRef) -> &str| Param::texts(sessions.clone().map(part));
    vec![
        texts(|session| session.endpoint.as_str()),
        texts(|session| session.tenant.as_ref().map_or("", TenantName::as_str)),
        texts(|session| session.key.as_str()),
    ]
}
