//! Answers without what a store may number as it likes.

use mailslot_core::store::{
    Count, LeaseRecord, Leased, MessageDetail, MessageRecord, Redrive, RedriveId, SessionRecord,
};
use mailslot_core::{Seq, StoreError};
use std::fmt::Debug;

/// Compares an answer with that of the model.
pub(super) fn same<T: PartialEq + Debug>(what: &str, model: T, store: T) -> Result<(), String> {
    if model == store {
        return Ok(());
    }
    Err(format!("{what} differ\n  memory store: {model:?}\n  this store:   {store:?}"))
}

/// Compares two lists and tells the first difference.
pub(super) fn same_lists<T: PartialEq + Debug>(what: &str, model: &[T], store: &[T]) -> Result<(), String> {
    let number = model.iter().zip(store).take_while(|(model, store)| model == store).count();
    same(&format!("{what} at {number}"), model.get(number), store.get(number))
}

/// Unwraps both answers, or compares the kinds of both errors.
pub(super) fn both<T>(
    model: Result<T, StoreError>,
    store: Result<T, StoreError>,
) -> Result<Option<(T, T)>, String> {
    match (model, store) {
        (Ok(model), Ok(store)) => Ok(Some((model, store))),
        (Err(model), Err(store)) => same("errors", model.kind(), store.kind()).map(|()| None),
        (Ok(_), Err(error)) => Err(format!("only this store failed: {error}")),
        (Err(error), Ok(_)) => Err(format!("only the memory store refused: {error}")),
    }
}

pub(super) fn record(record: &MessageRecord) -> MessageRecord {
    let mut record = record.clone();
    record.envelope.seq = Seq(0);
    record
}

pub(super) fn detail(detail: &MessageDetail) -> MessageDetail {
    MessageDetail { record: record(&detail.record), history: detail.history.clone() }
}

pub(super) fn leased(leased: &Leased) -> Leased {
    let mut leased = leased.clone();
    leased.envelope.seq = Seq(0);
    leased.lease.generation = 0;
    leased
}

pub(super) fn lease_record(lease: &LeaseRecord) -> LeaseRecord {
    LeaseRecord { generation: 0, ..lease.clone() }
}

/// A redrive, named by its place in the order of creation.
pub(super) fn redrive(redrive: &Redrive, known: &[RedriveId]) -> (Option<usize>, Redrive) {
    let place = known.iter().position(|id| *id == redrive.id);
    (place, Redrive { id: RedriveId(0), ..redrive.clone() })
}

/// The order of counts says nothing.
pub(super) fn counts(mut counts: Vec<Count>) -> Vec<Count> {
    counts.sort_unstable();
    counts
}

/// Sessions are listed by key; which of two equal keys comes first says nothing.
pub(super) fn sessions(mut sessions: Vec<SessionRecord>) -> Vec<SessionRecord> {
    sessions.sort_by(|a, b| (&a.key, &a.endpoint, &a.tenant).cmp(&(&b.key, &b.endpoint, &b.tenant)));
    sessions
}
