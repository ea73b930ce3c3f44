//! Why an accept was refused.

use mailslot_core::store::Appended;
use mailslot_core::{
    AcceptOutcome, CodecError, Contract, EncodeError, FieldError, MessageId, Receipt, Status, StoreError,
};
use std::sync::Arc;
use std::time::Duration;

/// An accept was refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// A field is out of bounds. Nothing was stored.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The message has no form in its encoding. Nothing was stored.
    #[error("failed to encode the message: {0}")]
    Codec(#[from] CodecError),
    /// The inbox does not know the contract. Nothing was stored.
    #[error(
        "contract {contract} is not registered: add its handler, or `.contract::<T>()` to accept without handling"
    )]
    UnknownContract {
        /// The contract.
        contract: Contract,
    },
    /// The supplied id or key was used before with other content. Nothing was stored.
    #[error(
        "`{field}` was used before with other content, by message {first}: use another one, or `.on_conflict(OnConflict::ReturnFirst)`"
    )]
    Conflict {
        /// The message that has the id or key.
        first: MessageId,
        /// Which of the two: `id` or `idempotency_key`.
        field: &'static str,
    },
    /// A strict accept met a message that was accepted before. Nothing was stored.
    #[error(
        "message {first} was accepted before and is {status}: roll the transaction back, or leave `.strict()` out to go on with its receipt"
    )]
    Duplicate {
        /// The message that was there first.
        first: MessageId,
        /// Where it stands.
        status: Status,
    },
    /// Too many messages wait in the session. Nothing was stored.
    #[error("`session` has too many messages waiting: see what blocks its head, or use more sessions")]
    SessionFull,
    /// Messages wait too long to be handled already: see [`BackPressure`](super::BackPressure). Nothing was stored.
    #[error("messages wait for {age:?} already: accept it again in {retry_after:?}, or add workers")]
    Overloaded {
        /// For how long the oldest due message waits.
        age: Duration,
        /// When to come back.
        retry_after: Duration,
    },
    /// The store failed. If the error is transient the message may or may not be stored: repeat the accept with the
    /// same key.
    #[error("failed to store the message: {0}")]
    Store(Arc<StoreError>),
}

impl From<StoreError> for AcceptError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<EncodeError> for AcceptError {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Codec(error) => Self::Codec(error),
            EncodeError::Field(error) => Self::Field(error),
            other => Self::Codec(CodecError::new(other.to_string())),
        }
    }
}

impl AcceptError {
    /// Whether the same accept may succeed later without anyone doing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::Overloaded { .. } => true,
            _ => false,
        }
    }
}

/// A batch was refused. Nothing of it was stored.
#[derive(Debug, Clone, thiserror::Error)]
#[error("message {index} of the batch: {error}")]
pub struct BatchError {
    /// The first message that was refused, counted from 0.
    pub index: usize,
    /// Why.
    #[source]
    pub error: AcceptError,
}

/// The receipt in a store's answer, or why there is none.
pub(super) fn receipt(answer: Appended) -> Result<Receipt, AcceptError> {
    match answer {
        Appended::Stored(receipt) => Ok(receipt),
        Appended::Conflict { first, field } => Err(AcceptError::Conflict { first, field }),
        Appended::SessionFull => Err(AcceptError::SessionFull),
        Appended::NotStored => {
            let detail = "another message of its group was refused";
            Err(StoreError::new(mailslot_core::StoreErrorKind::Unexpected, "append", detail).into())
        }
    }
}

/// The receipt of a strict accept: of a new message only.
pub(super) fn new_only(receipt: Receipt) -> Result<Receipt, AcceptError> {
    match receipt.outcome {
        AcceptOutcome::Accepted => Ok(receipt),
        AcceptOutcome::AlreadyAccepted { status } => {
            Err(AcceptError::Duplicate { first: receipt.id, status })
        }
    }
}

/// The receipts of a group, or its first refusal.
pub(super) fn receipts(answers: Vec<Appended>) -> Result<Vec<Receipt>, BatchError> {
    let refused = |answer: &Appended| matches!(answer, Appended::Conflict { .. } | Appended::SessionFull);
    if let Some(index) = answers.iter().position(refused) {
        let answer = answers.into_iter().nth(index).unwrap_or(Appended::NotStored);
        let error = receipt(answer).expect_err("a refusal has no receipt");
        return Err(BatchError { index, error });
    }
    let receipts = answers.into_iter().enumerate();
    receipts.map(|(index, answer)| receipt(answer).map_err(|error| BatchError { index, error })).collect()
}
