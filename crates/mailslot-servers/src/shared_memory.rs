//! What a killed PostgreSQL leaves outside of its directory.

use std::path::Path;
use std::process::{Command, Stdio};

/// Removes the small piece of System V shared memory by which a server finds out that another one runs on its data.
///
/// The server removes it itself unless it was killed. The system has only a few thousand of them, so a killed server
/// that is never started again has to be cleaned up after.
pub(crate) fn release(data: &Path) {
    let Ok(text) = std::fs::read_to_string(data.join("postmaster.pid")) else {
        return;
    };
    if let Some(number) = segment_of(&text) {
        // Best effort: if it cannot be removed, it does no harm before there are thousands.
        let _ =
            Command::new("ipcrm").args(["-m", number]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// The number in the seventh line, which is the key and the number of the memory.
fn segment_of(pid_file: &str) -> Option<&str> {
    pid_file.lines().nth(6)?.split_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stands_in_the_seventh_line() {
        let file = "37\n/data\n1764543212\n15432\n\n127.0.0.1\n  1839502     32770\nready   \n";
        assert_eq!(segment_of(file), Some("32770"));
        assert_eq!(segment_of("37\n/data\n"), None);
    }
}
