//! The job of every queue: about 256 bytes of JSON, as the messages of the benchmark.

use serde::{Deserialize, Serialize};

/// What the other fields leave of 256 bytes.
const FILLER: usize = 220;

/// A job that does nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Work {
    sent_ns: u64,
    filler: String,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self { sent_ns: 1_000_000_000_000, filler: "x".repeat(FILLER) }
    }
}
