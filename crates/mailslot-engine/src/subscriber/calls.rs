//! What a subscriber asks of its store and its broker: the questions of many deliveries in one call.

use crate::coalesce::{Coalescer, Shared, Size};
use crate::store::may_be_one_message;
use mailslot_core::broker::{BrokerError, BrokerErrorKind, BrokerSettlement, DeliveryTag, Receiver};
use mailslot_core::limits::SETTLE_BATCH_MAX;
use mailslot_core::store::{Concluded, Conclusion, Lookup, Question};
use mailslot_core::{LedgerStore, StoreError, StoreErrorKind};
use std::sync::Arc;

/// Parts and bytes of one call to the store.
const STORE_CALL: Size = Size { parts: SETTLE_BATCH_MAX, bytes: 8 * 1024 * 1024 };

/// How many deliveries are settled in one call: bounded only so that the first of them need not wait for long.
const BROKER_CALL: Size = Size { parts: 1_000, bytes: usize::MAX };

const ONE: Size = Size { parts: 1, bytes: 0 };

/// The calls of one subscriber.
#[derive(Debug)]
pub(super) struct Calls {
    look_ups: Coalescer<LookUps>,
    conclusions: Coalescer<Conclusions>,
    settlements: Coalescer<Settlements>,
}

impl Calls {
    pub(super) fn new(ledger: Arc<dyn LedgerStore>, receiver: Arc<dyn Receiver>, at_once: usize) -> Self {
        Self {
            look_ups: Coalescer::new(LookUps { ledger: Arc::clone(&ledger), at_once }),
            conclusions: Coalescer::new(Conclusions { ledger, at_once }),
            settlements: Coalescer::new(Settlements { receiver }),
        }
    }

    /// What is known of a delivery and its session.
    pub(super) async fn look_up(&self, question: Question) -> Result<Lookup, Arc<StoreError>> {
        self.look_ups.ask(question).await.unwrap_or_else(|| Err(no_runtime("look_up")))
    }

    /// Records or stores what a delivery has come to.
    pub(super) async fn conclude(&self, conclusion: Conclusion) -> Result<Concluded, Arc<StoreError>> {
        self.conclusions.ask(conclusion).await.unwrap_or_else(|| Err(no_runtime("conclude")))
    }

    /// Tells the broker.
    pub(super) async fn settle(
        &self,
        tag: DeliveryTag,
        settlement: BrokerSettlement,
    ) -> Result<(), BrokerError> {
        let lost = || {
            let detail = "the runtime is ending; the broker delivers again what is not settled";
            Err(BrokerError::new(BrokerErrorKind::Unavailable, "settle", detail))
        };
        self.settlements.ask((tag, settlement)).await.unwrap_or_else(lost)
    }
}

fn no_runtime(operation: &'static str) -> Arc<StoreError> {
    let detail = "the runtime is ending; the broker delivers again what is not settled";
    Arc::new(StoreError::new(StoreErrorKind::Unavailable, operation, detail))
}

struct LookUps {
    ledger: Arc<dyn LedgerStore>,
    at_once: usize,
}

impl Shared for LookUps {
    type Item = Question;
    type Answer = Result<Lookup, Arc<StoreError>>;

    const MAX: Size = STORE_CALL;

    fn size(&self, _: &Question) -> Size {
        ONE
    }

    fn at_once(&self) -> usize {
        self.at_once
    }

    async fn call(&self, questions: Vec<Question>) -> Vec<Self::Answer> {
        match self.ledger.look_up(&questions).await {
            Ok(found) => found.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(Arc::new(error)); questions.len()],
        }
    }
}

struct Conclusions {
    ledger: Arc<dyn LedgerStore>,
    at_once: usize,
}

impl Shared for Conclusions {
    type Item = Conclusion;
    type Answer = Result<Concluded, Arc<StoreError>>;

    const MAX: Size = STORE_CALL;

    fn size(&self, conclusion: &Conclusion) -> Size {
        let bytes = match conclusion {
            Conclusion::Handled(_) => 0,
            Conclusion::Store(stored) => stored.message.payload.bytes().len(),
        };
        Size { parts: 1, bytes }
    }

    fn at_once(&self) -> usize {
        self.at_once
    }

    async fn call(&self, conclusions: Vec<Conclusion>) -> Vec<Self::Answer> {
        let count = conclusions.len();
        // The copy is needed only where one bad message could spoil the others.
        let again = (count > 1).then(|| conclusions.clone());
        match (self.ledger.conclude(conclusions).await, again) {
            (Ok(concluded), _) => concluded.into_iter().map(Ok).collect(),
            (Err(error), Some(again)) if may_be_one_message(&error) => self.one_by_one(again).await,
            (Err(error), _) => vec![Err(Arc::new(error)); count],
        }
    }
}

impl Conclusions {
    /// Finds the one that is to blame, so that the others are concluded.
    async fn one_by_one(&self, conclusions: Vec<Conclusion>) -> Vec<Result<Concluded, Arc<StoreError>>> {
        let mut answers = Vec::with_capacity(conclusions.len());
        for conclusion in conclusions {
            let concluded = self.ledger.conclude(vec![conclusion]).await;
            let only = |mut concluded: Vec<_>| concluded.pop().ok_or_else(|| no_answer("conclude"));
            answers.push(concluded.and_then(only).map_err(Arc::new));
        }
        answers
    }
}

fn no_answer(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unexpected, operation, "the store gave no answer to a question")
}

struct Settlements {
    receiver: Arc<dyn Receiver>,
}

impl Shared for Settlements {
    type Item = (DeliveryTag, BrokerSettlement);
    type Answer = Result<(), BrokerError>;

    const MAX: Size = BROKER_CALL;

    fn size(&self, _: &Self::Item) -> Size {
        ONE
    }

    fn at_once(&self) -> usize {
        1
    }

    async fn call(&self, settlements: Vec<Self::Item>) -> Vec<Self::Answer> {
        self.receiver.settle(settlements).await
    }
}
