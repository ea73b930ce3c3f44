//! What the handlers did, in a file of its own: the store cannot say what happened outside of it.

use anyhow::Context as _;
use mailslot::{Context, MessageId};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// A file to which every handler adds one line.
#[derive(Debug, Clone)]
pub(super) struct Effects(Arc<File>);

impl Effects {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self(Arc::new(file)))
    }

    /// Does what the handler is for. One write, so that a killed process leaves no half line.
    pub(super) fn add(&self, context: &Context) -> io::Result<()> {
        let envelope = context.envelope();
        (&*self.0).write_all(format!("{} {}\n", envelope.id, envelope.contract).as_bytes())
    }
}

/// The effects of each message: where in the file they stand, first one first.
#[derive(Debug, Default)]
pub(super) struct Ledger(HashMap<MessageId, Vec<usize>>);

impl Ledger {
    /// Reads the file; without one, nothing was done.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut ledger = Self::default();
        if !path.exists() {
            return Ok(ledger);
        }
        for (place, line) in std::fs::read_to_string(path)?.lines().enumerate() {
            let id = line.split(' ').next().unwrap_or(line);
            let id = id.parse().with_context(|| format!("line {} of the effects has no id", place + 1))?;
            ledger.0.entry(id).or_default().push(place);
        }
        Ok(ledger)
    }

    /// The places of a message's effects.
    pub(super) fn of(&self, id: MessageId) -> &[usize] {
        self.0.get(&id).map_or(&[], Vec::as_slice)
    }
}
