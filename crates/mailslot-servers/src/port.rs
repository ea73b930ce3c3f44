//! Ports for servers.

use crate::error::{Explain, ServerError};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;

/// Below the ports that the system gives to clients: one of those could take a server's port while it is down.
const PORTS: Range<u16> = 10_000..32_000;

/// More than this many taken ports in a row means that something else is wrong.
const ATTEMPTS_MAX: usize = 100;

/// How many times in a row somebody else may take a port between the look and the start.
const STARTS_MAX: usize = 5;

/// Starts a server on a port of 127.0.0.1 that nobody listens on; on another one if it says in its log that it is taken.
pub(crate) fn start_on_a_free_port(
    log: &Path,
    mut start: impl FnMut(u16) -> Result<(), ServerError>,
) -> Result<(), ServerError> {
    for _ in 1..STARTS_MAX {
        let result = start(free_port()?);
        if result.is_ok() || !says_that_it_is_taken(log) {
            return result;
        }
        std::fs::write(log, "").explain(|| "empty the log of a server".into())?;
    }
    start(free_port()?)
}

fn says_that_it_is_taken(log: &Path) -> bool {
    const WORDS: [&str; 2] = ["Address already in use", "eaddrinuse"];
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    WORDS.into_iter().any(|words| text.contains(words))
}

/// A port of 127.0.0.1 on which nobody listens.
pub(crate) fn free_port() -> Result<u16, ServerError> {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let free = std::iter::repeat_with(any_port).take(ATTEMPTS_MAX).find(is_free);
    free.ok_or_else(|| ServerError::new("failed to find a free port on 127.0.0.1"))
}

fn any_port() -> u16 {
    // The standard library has no other source of chance.
    let chance = RandomState::new().build_hasher().finish() % u64::from(PORTS.end - PORTS.start);
    PORTS.start + u16::try_from(chance).expect("it is less than the number of ports")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_listened_on_and_is_no_client_port() {
        let port = free_port().unwrap();
        assert!(PORTS.contains(&port));
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    /// Starts a server that writes these texts into its log, one at each attempt, and gives the number of attempts.
    #[track_caller]
    fn attempts_with(logs: &[&str], succeeds: bool) -> usize {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut attempts = 0;
        let result = start_on_a_free_port(log.path(), |_| {
            let text = logs.get(attempts).copied().unwrap_or_default();
            std::fs::write(log.path(), text).unwrap();
            attempts += 1;
            if text == "listening" { Ok(()) } else { Err(ServerError::new("it ended")) }
        });
        assert_eq!(result.is_ok(), succeeds);
        attempts
    }

    #[test]
    fn another_port_is_tried_only_if_the_first_one_was_taken() {
        const TAKEN: &str = "could not bind: Address already in use";
        assert_eq!(attempts_with(&["listening"], true), 1);
        assert_eq!(attempts_with(&[TAKEN, TAKEN, "listening"], true), 3);
        assert_eq!(attempts_with(&["no space left"], false), 1);
        assert_eq!(attempts_with(&[TAKEN; 9], false), STARTS_MAX);
    }
}
