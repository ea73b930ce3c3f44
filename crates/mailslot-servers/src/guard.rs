//! Cleans up after a process that could not do it itself: one that was interrupted or killed.

use crate::error::{Explain, ServerError};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that outlives this process by a moment. It holds one end of a pipe; the system closes the other end when
/// this process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    /// Watches over a directory: see `guard.sh`.
    pub(crate) fn watch(directory: &Path) -> Result<Self, ServerError> {
        let shell = Command::new("sh")
            .args(["-c", include_str!("guard.sh"), "guard"])
            .arg(directory)
            .current_dir("/")
            // A group of its own: neither Ctrl-C nor a test runner that ends a whole group reaches it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .explain(|| "start a shell that cleans up".into())?;
        Ok(Self { shell })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::processes_in;

    #[test]
    fn when_its_pipe_closes_it_ends_what_runs_in_the_directory_and_removes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let guard = Guard::watch(&path).unwrap();
        let mut server = Command::new("sleep").arg("3600").current_dir(&path).spawn().unwrap();
        assert_eq!(processes_in(&path).len(), 1);

        drop(guard);

        let status = server.wait().unwrap();
        assert!(!status.success(), "it was killed, not finished: {status}");
        assert!(!path.exists());
    }

    #[test]
    fn it_leaves_what_runs_elsewhere_alone() {
        let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let guard = Guard::watch(&directory.path().canonicalize().unwrap()).unwrap();
        let mut bystander = Command::new("sleep").arg("3600").current_dir(other.path()).spawn().unwrap();

        drop(guard);

        assert_eq!(bystander.try_wait().unwrap(), None);
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}
