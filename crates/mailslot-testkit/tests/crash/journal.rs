//! What the processes of a round write down: each line is one write, and SIGKILL loses no write that returned.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Receipts that were given: name, nonce, place, id.
pub(crate) const RECEIPTS: &str = "receipts.log";

/// Effects outside of the database: name, attempt, place in acceptance order.
pub(crate) const EFFECTS: &str = "effects.log";

/// Claims and settlements that were answered: see `fence.rs`.
pub(crate) const LEASES: &str = "leases.log";

/// A file of lines that all processes of a round append to.
#[derive(Debug, Clone)]
pub(crate) struct Journal(Arc<File>);

impl Journal {
    pub(crate) fn open(dir: &Path, name: &str) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(dir.join(name));
        Self(Arc::new(file.expect("the journal opens")))
    }

    /// Writes whole lines.
    pub(crate) fn write(&self, lines: &str) {
        (&*self.0).write_all(format!("{lines}\n").as_bytes()).expect("the journal takes a line");
    }
}

/// The words of each line.
pub(crate) fn read(dir: &Path, name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}
