//! Where a demo keeps its files.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The folder of one demo: the store, what the handlers did, and the worker's log.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new temporary folder. It stays, so that what the demo proposes next works.
    pub(super) fn temporary() -> anyhow::Result<Self> {
        let id = Uuid::new_v4().simple().to_string();
        Self::create(std::env::temp_dir().join(format!("mailslot-demo-{}", &id[..8])))
    }

    /// A folder that is new or empty.
    pub(super) fn create(dir: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("`dir` cannot be made: {}", dir.display()))?;
        if fs::read_dir(&dir)?.next().is_some() {
            bail!("`dir` is not empty: name a new folder, so that the demo finds only its own messages");
        }
        Self::existing(dir)
    }

    /// The folder of an earlier demo, or of the parent process.
    pub(super) fn existing(dir: PathBuf) -> anyhow::Result<Self> {
        let dir = dir.canonicalize().with_context(|| format!("`dir` does not exist: {}", dir.display()))?;
        Ok(Self(dir))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The store, as `--store` takes it.
    pub(super) fn store(&self) -> String {
        self.0.join("mailslot.db").display().to_string()
    }

    /// What the handlers did.
    pub(super) fn effects(&self) -> PathBuf {
        self.0.join("effects.txt")
    }

    /// What the worker logged.
    pub(super) fn log(&self) -> PathBuf {
        self.0.join("worker.log")
    }
}
