//! What operators look at, and what an append has to know. Each names the order of its columns.

use super::read::{Columns, Read, RowReader};
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Seq;
use crate::message::{Fingerprint, LedgerKey, LedgerKeys};
use crate::name::{SessionKey, TenantName};
use crate::outcome::OutcomeRecord;
use crate::receipt::{AcceptOutcome, Receipt};
use crate::store::{
    Count, LeaseRecord, LedgerEntry, MessageDetail, MessageRecord, Redrive, RedriveId, RedriveSpec,
    RedriveWalk, SessionRecord,
};
use jiff::Timestamp;
use std::collections::HashMap;
use uuid::Uuid;

impl<R: Columns> RowReader<'_, R> {
    /// What the ledger knows of a key. Columns: fingerprint, id, `accepted_at`, tenant, traceparent, tracestate,
    /// correlation, causation, endpoint, contract, version, status; the first at `index`.
    pub fn ledger_entry(&mut self, index: usize) -> LedgerEntry {
        let fingerprint = self.bytes(index).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let receipt = Receipt {
            id: self.id(index + 1, 0),
            accepted_at: self.timestamp(index + 2, "accepted_at").unwrap_or(Timestamp::UNIX_EPOCH),
            tenant: self.tenant(index + 3),
            trace: self.trace(index + 4),
            endpoint: self.endpoint(index + 8),
            contract: self.contract(index + 9),
            outcome: AcceptOutcome::AlreadyAccepted { status: self.status(index + 11) },
        };
        LedgerEntry { fingerprint: Fingerprint(fingerprint), receipt }
    }

    /// The ledger keys of a stored message, and which message. Columns: seq, id, whether the id was supplied, tenant,
    /// `idempotency_key`.
    pub fn ledger_keys(mut self) -> (i64, LedgerKeys) {
        let seq = self.integer(0).unwrap_or_default();
        let tenant = self.tenant(3);
        let supplied = self.integer(2) == Some(1);
        let id = supplied.then(|| LedgerKey::of_id(tenant.as_ref(), self.id(1, seq)));
        let key = self.idempotency_key(4).map(|key| LedgerKey::of_key(tenant.as_ref(), &key));
        (seq, LedgerKeys { id, key })
    }

    /// A counter. Columns: endpoint, contract, version, status, messages.
    pub fn tally(mut self) -> Count {
        let (endpoint, contract) = (self.endpoint(0), self.contract(1));
        Count { endpoint, contract, status: self.status(3), messages: self.count(4) }
    }

    /// A session. Columns: endpoint, tenant or '', key, the head's id, the head's status, how many wait. `None`: its key
    /// or head cannot be read.
    pub fn session(mut self) -> Option<SessionRecord> {
        Some(SessionRecord {
            endpoint: self.endpoint(0),
            tenant: self.text(1, "tenant").and_then(|tenant| TenantName::new(tenant).ok()),
            key: SessionKey::new(self.text(2, "session")?).ok()?,
            head: self.other_id(3)?,
            head_status: self.status(4),
            parked: self.count(5),
        })
    }

    /// A lease. Columns: owner, label, generation, until, how many messages it holds.
    pub fn lease(mut self) -> LeaseRecord {
        LeaseRecord {
            owner: self.bytes(0).and_then(|owner| Uuid::from_slice(owner).ok()).unwrap_or_default(),
            label: self.text(1, "label").unwrap_or_default(),
            generation: self.integer(2).unwrap_or_default(),
            until: self.timestamp(3, "until").unwrap_or(Timestamp::UNIX_EPOCH),
            messages: self.count(4),
        }
    }

    /// A redrive. Columns: id, filter (JSON), rate, state, total, requeued, `created_at`, `updated_at`, passed, last.
    ///
    /// # Errors
    /// `Corrupt`: a value cannot be read. A redrive decides what is requeued, so nothing stands in for it.
    pub fn redrive(mut self, operation: &'static str) -> Result<RedriveWalk, StoreError> {
        self.walk().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Corrupt, operation, "a stored redrive cannot be read; cancel it")
        })
    }

    fn walk(&mut self) -> Option<RedriveWalk> {
        let filter = serde_json::from_slice(self.bytes(1)?).ok()?;
        let rate = u32::try_from(self.integer(2)?).ok()?;
        let redrive = Redrive {
            id: RedriveId(self.integer(0).unwrap_or_default()),
            spec: RedriveSpec { filter, rate },
            state: self.label(3, "state")?,
            total: self.count(4),
            requeued: self.count(5),
            created_at: self.timestamp(6, "created_at")?,
            updated_at: self.timestamp(7, "updated_at")?,
        };
        let place = |index| self.integer(index).unwrap_or_default();
        Some(RedriveWalk { redrive, passed: place(8), last: place(9) })
    }
}

/// Messages with their histories, which are in order.
///
/// # Errors
/// `Corrupt`: a value cannot be read.
pub fn details(
    records: impl IntoIterator<Item = Read<MessageRecord>>,
    outcomes: impl IntoIterator<Item = Read<(i64, Option<OutcomeRecord>)>>,
) -> Result<Vec<MessageDetail>, StoreError> {
    let mut histories: HashMap<i64, Vec<OutcomeRecord>> = HashMap::new();
    for Read { value: (seq, record), defect } in outcomes {
        match (record, defect) {
            (Some(record), None) => histories.entry(seq).or_default().push(record),
            (_, defect) => return Err(corrupt(Seq(seq), defect.unwrap_or("outcome"))),
        }
    }
    let detail = |read: Read<MessageRecord>| {
        let seq = read.value.envelope.seq;
        match read.defect {
            Some(field) => Err(corrupt(seq, field)),
            None => Ok(MessageDetail {
                record: read.value,
                history: histories.remove(&seq.0).unwrap_or_default(),
            }),
        }
    };
    records.into_iter().map(detail).collect()
}

fn corrupt(seq: Seq, field: &str) -> StoreError {
    let detail = format!("`{field}` of the message at place {seq} cannot be read; purge it, or mend the row");
    StoreError::new(StoreErrorKind::Corrupt, "get", detail)
}
