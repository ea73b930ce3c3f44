//! Starting a server's process.

use crate::account::Account;
use crate::error::{Explain, ServerError};
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How many lines of a server's log an error shows.
const LOG_LINES_SHOWN: usize = 30;

/// A command of a server that works in `directory`, as the servers' account and without the user's own settings.
pub(crate) fn command(program: &Path, directory: &Path, account: Account) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env("HOME", directory).env("LC_ALL", "C").stdin(Stdio::null());
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    account.apply(&mut command);
    command
}

/// Starts a server whose output goes to the end of a log.
pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Child, ServerError> {
    let open = || OpenOptions::new().create(true).append(true).open(log);
    let output = open().explain(|| format!("open the log {}", log.display()))?;
    let errors = output.try_clone().explain(|| format!("open the log {}", log.display()))?;
    let name = command.get_program().to_string_lossy().into_owned();
    // A group of its own, so that Ctrl-C ends the tests before it ends their servers.
    command.process_group(0).stdout(output).stderr(errors).spawn().explain(|| format!("start {name}"))
}

/// The last lines of a log, with where it is.
pub(crate) fn end_of_log(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n");
    format!("the end of {}:\n{shown}", log.display())
}
