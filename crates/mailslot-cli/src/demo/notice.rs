//! What a worker process tells the process that watches it: one line of JSON each.

use mailslot::Contract;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Something that a reader of the demo should see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Notice {
    /// The worker is about to kill itself.
    Dying {
        /// What it handles.
        contract: Contract,
        /// The attempt that ends with it.
        attempt: u32,
    },
    /// The worker took back messages whose leases ran out.
    TookBack {
        /// How many.
        messages: u64,
    },
}

impl Notice {
    /// Writes the line. Nobody may be listening any more, and then nobody misses it.
    pub(super) fn send(&self) {
        let mut out = io::stdout().lock();
        let line = serde_json::to_string(self).expect("a notice is plain data");
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Reads a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
