//! Where one server keeps everything, or where something is kept for servers.

use crate::account::Account;
use crate::error::{Explain, ServerError};
use crate::guard::Guard;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A fresh temporary directory that belongs to the servers' account. It goes with this value or with this process.
#[derive(Debug)]
pub struct Directory {
    // Declared before the guard, so that the directory is gone when the guard looks for it.
    _temporary: TempDir,
    _guard: Guard,
    path: PathBuf,
}

impl Directory {
    /// Makes one whose name begins with the prefix.
    ///
    /// # Errors
    /// It cannot be made, given to the account or watched over.
    pub fn create(prefix: &str, account: Account) -> Result<Self, ServerError> {
        let temporary = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .explain(|| "make a temporary directory for a server".into())?;
        account.own(temporary.path())?;
        // Without links, because the system tells where a process works without them.
        let path = temporary.path().canonicalize().explain(|| "find the directory of a server".into())?;
        let guard = Guard::watch(&path)?;
        Ok(Self { _temporary: temporary, _guard: guard, path })
    }

    /// Where it is, without links on the way.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
