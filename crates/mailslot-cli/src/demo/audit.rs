//! Was anything lost, done twice or done out of order? Answered from the store and from what the handlers left behind.

use super::effects::Ledger;
use mailslot::store::{Filter, MessageDetail, MessageRecord, PageRequest};
use mailslot::{MessageId, Operator, OutcomeKind, Reason, Receipt, Status};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// What a count of everything finds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Audit {
    /// Messages that ended as completed.
    pub(super) handled: u64,
    /// Attempts that failed and were repeated.
    pub(super) retries: u64,
    /// Attempts that ended with the death of their worker.
    pub(super) leases_run_out: u64,
    /// Dead letters by reason.
    pub(super) dead_letters: BTreeMap<&'static str, u64>,
    /// Accepted messages that are not in exactly one final state, or count as handled without an effect.
    pub(super) lost: u64,
    /// Messages that nobody was given a receipt for.
    pub(super) unknown: u64,
    /// Messages whose effect was written more than once.
    pub(super) effects_twice: u64,
    /// Those of them that no crash explains.
    pub(super) effects_twice_unexplained: u64,
    /// Messages whose effect came before that of an earlier one of their session.
    pub(super) out_of_order: u64,
    /// Invariants of the store that do not hold.
    pub(super) violations: Vec<String>,
}

impl Audit {
    /// Compares the store with the receipts and the effects.
    pub(super) async fn of(
        operator: &Operator,
        receipts: &[Receipt],
        effects: &Ledger,
    ) -> anyhow::Result<Self> {
        let records = every_record(operator).await?;
        let mut audit = Self { out_of_order: out_of_order(&records, effects), ..Self::default() };
        let mut found: HashMap<MessageId, u64> = HashMap::new();
        for record in records {
            let envelope = &record.envelope;
            *found.entry(envelope.id).or_default() += u64::from(record.status.is_terminal());
            if let Some(detail) = operator.get(envelope.id, envelope.tenant.as_ref()).await? {
                audit.add(&detail, effects);
            }
        }
        let once = |receipt: &&Receipt| found.get(&receipt.id) == Some(&1);
        audit.lost += receipts.iter().filter(|receipt| !once(receipt)).count() as u64;
        audit.unknown = found.len().saturating_sub(receipts.len()) as u64;
        let violations = operator.check().await?.into_iter();
        audit.violations = violations.map(|found| format!("{}: {}", found.invariant, found.found)).collect();
        Ok(audit)
    }

    fn add(&mut self, detail: &MessageDetail, effects: &Ledger) {
        let record = &detail.record;
        let how_often = |kind| detail.history.iter().filter(|outcome| outcome.kind == kind).count() as u64;
        let crashed = how_often(OutcomeKind::Expired);
        self.retries += how_often(OutcomeKind::Retried);
        self.leases_run_out += crashed;
        let times = effects.of(record.envelope.id).len();
        match record.status {
            Status::Completed => {
                self.handled += 1;
                self.lost += u64::from(times == 0);
            }
            Status::DeadLettered => {
                *self.dead_letters.entry(record.reason.map_or("unknown", Reason::as_str)).or_default() += 1;
            }
            _ => {}
        }
        self.effects_twice += u64::from(times > 1);
        self.effects_twice_unexplained += u64::from(times as u64 > 1 + crashed);
    }

    /// Whether everything is as promised.
    pub(super) fn is_clean(&self) -> bool {
        self.lost + self.unknown + self.effects_twice_unexplained + self.out_of_order == 0
            && self.violations.is_empty()
    }
}

async fn every_record(operator: &Operator) -> anyhow::Result<Vec<MessageRecord>> {
    let mut records = Vec::new();
    let mut page = PageRequest { size: 200, ..PageRequest::default() };
    loop {
        let found = operator.query(&Filter::default(), &page).await?;
        records.extend(found.items);
        let Some(next) = found.next else { return Ok(records) };
        page.after = Some(next);
    }
}

/// `records` come in the order of acceptance, and so must the first effects of each session.
fn out_of_order(records: &[MessageRecord], effects: &Ledger) -> u64 {
    let mut last = HashMap::new();
    let mut out_of_order = 0;
    for envelope in records.iter().map(|record| &record.envelope) {
        let (Some(session), Some(&place)) = (&envelope.session, effects.of(envelope.id).first()) else {
            continue;
        };
        let before = last.insert((&envelope.tenant, session), place);
        out_of_order += u64::from(before.is_some_and(|before| before > place));
    }
    out_of_order
}
