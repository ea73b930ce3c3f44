//! The text files of the repository, as the rules read them.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Every text file by its path from the workspace's folder, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Reads what git tracks or would track. Files that are not UTF-8 are passed over.
    pub(crate) fn read(workspace: &Path) -> Result<Self> {
        let output = Command::new("git")
            // The checkout of a container may belong to another user than the one who checks it.
            .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(workspace)
            .output()
            .context("tidy asks git for the files; install git")?;
        if !output.status.success() {
            bail!("git lists no files: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut files = BTreeMap::new();
        for path in String::from_utf8_lossy(&output.stdout).split('\0').filter(|path| !path.is_empty()) {
            // A tracked file that was just deleted is no file.
            let Ok(bytes) = std::fs::read(workspace.join(path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                files.insert(path.to_owned(), text);
            }
        }
        Ok(Self(files))
    }

    /// Path and text of every file, in path order.
    pub(crate) fn files(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Path and text of every file whose name ends so.
    pub(crate) fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter(move |(path, _)| path.ends_with(end)).map(|(path, text)| (&**path, &**text))
    }

    /// The text of one file.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

impl<const COUNT: usize> From<[(&str, &str); COUNT]> for Tree {
    fn from(files: [(&str, &str); COUNT]) -> Self {
        Self(files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect())
    }
}
