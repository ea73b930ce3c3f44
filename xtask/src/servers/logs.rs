//! The logs of the servers, kept only if something failed.

use crate::step::{self, note};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A folder for the logs of one run. It goes with this value, unless it is to be kept.
pub(crate) struct Logs {
    folder: PathBuf,
    keep: bool,
}

impl Logs {
    /// Makes a folder for this process, and removes those of processes that are gone.
    pub(crate) fn create() -> Result<Self> {
        let parent = step::server_folder()?.join("logs");
        remove_old(&parent);
        let folder = parent.join(std::process::id().to_string());
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self { folder, keep: false })
    }

    /// Where a server writes its log to.
    pub(crate) fn of(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.log"))
    }

    /// Keeps the logs, and says where they are.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
        note(&format!("==> the logs of the servers, until the next run: {}", self.folder.display()));
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The folders are named by the process that made them. Best effort: an old log does no harm.
fn remove_old(parent: &Path) {
    for folder in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(folder.file_name()).exists() {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}
