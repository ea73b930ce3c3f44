//! Identities: of a message, of its place in acceptance order, of a redrive.

use crate::field::FieldError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The identity of a message, unique within its tenant.
///
/// Ids that Mailslot makes are UUIDv7, so that indexes grow at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Uuid", into = "Uuid")]
pub struct MessageId(Uuid);

impl MessageId {
    /// A new time-ordered id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Takes an id that the caller chose.
    ///
    /// # Errors
    /// The all-zero UUID: it is what an unset variable looks like.
    pub fn supplied(id: Uuid) -> Result<Self, FieldError> {
        if id.is_nil() {
            return Err(FieldError::new("id", "is the all-zero UUID", "supply a real one or leave it out"));
        }
        Ok(Self(id))
    }

    /// The id of what has this hash, a `UUIDv8`.
    pub(crate) fn of_hash(hash: [u8; 16]) -> Self {
        Self(Uuid::new_v8(hash))
    }

    /// The UUID itself.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl TryFrom<Uuid> for MessageId {
    type Error = FieldError;
    fn try_from(id: Uuid) -> Result<Self, FieldError> {
        Self::supplied(id)
    }
}

impl From<MessageId> for Uuid {
    fn from(id: MessageId) -> Uuid {
        id.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for MessageId {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let id = Uuid::parse_str(text).map_err(|_| {
            FieldError::new("id", "is not a UUID", "write it as 8-4-4-4-12 hexadecimal digits")
        })?;
        Self::supplied(id)
    }
}

/// A message's place in acceptance order within its store, and its address there. Never reused; may have gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub i64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which run of a message this is.
///
/// `generation` counts requeues: a requeued message starts a new one with fresh attempts. `number` counts leases
/// within the generation, from 1; 0 stands for "never leased".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// How often the message was requeued or skipped by an operator.
    pub generation: u32,
    /// How often it was leased since then.
    pub number: u32,
}

impl Attempt {
    /// A message that was accepted and never leased.
    pub const FIRST: Self = Self { generation: 0, number: 0 };

    /// The attempt that a lease begins.
    pub fn leased(self) -> Self {
        Self { number: self.number + 1, ..self }
    }

    /// The attempt given back by a release: as if it had never been leased.
    pub fn released(self) -> Self {
        Self { number: self.number.saturating_sub(1), ..self }
    }

    /// The start of the next generation.
    pub fn requeued(self) -> Self {
        Self { generation: self.generation + 1, number: 0 }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            0 => write!(f, "{}", self.number),
            generation => write!(f, "{} (after requeue {generation})", self.number),
        }
    }
}
