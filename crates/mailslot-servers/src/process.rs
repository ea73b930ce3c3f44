//! The processes of a server, found by the directory they work in.
//!
//! A server's own children are not enough: those of a killed PostgreSQL belong to nobody of ours. But all of them work
//! in its directory, and nothing else on the machine does.

use crate::error::ServerError;
use crate::readiness::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// How long a signal may take to have its effect on a busy machine.
const SIGNAL_TIME_MAX: Duration = Duration::from_secs(20);

/// Every live process that works in the directory or below it. One that has ended and was not waited for is not.
pub(crate) fn processes_in(directory: &Path) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let works_there = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(directory))
    };
    let pid = |entry: std::fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    entries.flatten().filter(works_there).filter_map(pid).collect()
}

/// Sends a signal; a process that is gone by now is no failure.
pub(crate) fn send(pid: Pid, signal: Signal) -> Result<(), ServerError> {
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(ServerError::new(format!("failed to signal a server's process: {error}"))),
    }
}

/// Kills every process in the directory and returns when the last one is gone.
pub(crate) fn kill_all_in(directory: &Path) -> Result<(), ServerError> {
    wait_until("end the server's processes", SIGNAL_TIME_MAX, || {
        let processes = processes_in(directory);
        for &pid in &processes {
            send(pid, Signal::KILL)?;
        }
        Ok(processes.is_empty())
    })
}

/// Stops the main process first, so that it starts no other one meanwhile, then all the others.
pub(crate) fn pause_all_in(directory: &Path, main: Pid) -> Result<(), ServerError> {
    send(main, Signal::STOP)?;
    wait_until("pause the server", SIGNAL_TIME_MAX, || Ok(is_paused(main)))?;
    wait_until("pause the server's processes", SIGNAL_TIME_MAX, || {
        let processes = processes_in(directory);
        for &pid in &processes {
            send(pid, Signal::STOP)?;
        }
        Ok(processes.into_iter().all(is_paused))
    })
}

/// Lets every process in the directory go on.
pub(crate) fn resume_all_in(directory: &Path) -> Result<(), ServerError> {
    processes_in(directory).into_iter().try_for_each(|pid| send(pid, Signal::CONT))
}

/// Whether the process is stopped. One that is gone runs no more, either.
fn is_paused(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    status.map_or(true, |status| matches!(state_of(&status), Some('T' | 'Z' | 'X')))
}

/// The state in a line such as `42 (name) S 1 …`. The name may hold anything, parentheses and blanks too.
fn state_of(status: &str) -> Option<char> {
    status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_found_behind_any_name() {
        assert_eq!(state_of("42 (postgres) S 1 42 42 0"), Some('S'));
        assert_eq!(state_of("42 (a) T) Z) T 1 42 42 0"), Some('T'));
        assert_eq!(state_of(""), None);
    }
}
