//! A message as the moves know it.

use crate::id::Attempt;
use serde::{Deserialize, Serialize};

/// A message in a place, with all that a move needs. Can be read from a JSON array, field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Its place in acceptance order.
    pub seq: i64,
    /// The number of its endpoint and contract.
    pub lane: i64,
    /// The rank of its class.
    pub priority: i64,
    /// How often it was requeued.
    pub generation: u32,
    /// How often it was leased since then.
    pub attempt: u32,
    /// The session whose head it is, or behind whose head it waits.
    pub session: Option<i64>,
    /// See [`code_of_policy`](crate::stored::code_of_policy).
    pub key_policy: i64,
}

impl Slot {
    /// Its attempt.
    pub fn attempt(&self) -> Attempt {
        Attempt { generation: self.generation, number: self.attempt }
    }

    /// The same message with another attempt.
    pub fn with(self, attempt: Attempt) -> Self {
        Self { generation: attempt.generation, attempt: attempt.number, ..self }
    }
}
