//! CPU time of a server's processes, where they run on this machine.

use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Client;

/// The processes of one server.
#[derive(Debug)]
pub(super) struct Processes {
    postmaster: u32,
}

/// The fields of one process that count here.
struct Process {
    parent: u32,
    cpu: Duration,
    /// Of its children that ended.
    children_cpu: Duration,
}

impl Processes {
    /// The processes of the server behind a connection; `None` if they are elsewhere, or this system does not tell.
    pub(super) async fn of(client: &Client) -> anyhow::Result<Option<Self>> {
        let sql = "SELECT pg_backend_pid(),
            inet_server_addr() IS NULL OR inet_server_addr() <<= '127.0.0.0/8' OR inet_server_addr() = '::1'";
        let row = client.query_one(sql, &[]).await?;
        let (backend, local): (i32, bool) = (row.get(0), row.get(1));
        let backend = u32::try_from(backend).unwrap_or_default();
        // Behind a forwarded port the number may belong to a process of this machine that is no server.
        let name =
            std::fs::read_to_string(PathBuf::from(format!("/proc/{backend}/comm"))).unwrap_or_default();
        let server = (local && name.starts_with("postgres")).then(|| read(backend)).flatten();
        Ok(server.map(|backend| Self { postmaster: backend.parent }))
    }

    /// CPU time so far, of those that ended too.
    pub(super) fn cpu(&self) -> Duration {
        let Some(postmaster) = read(self.postmaster) else { return Duration::ZERO };
        let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let children = pids.filter_map(read).filter(|process| process.parent == self.postmaster);
        children.map(|process| process.cpu).sum::<Duration>() + postmaster.cpu + postmaster.children_cpu
    }
}

/// Source: the manual page `proc_pid_stat(5)`.
fn read(pid: u32) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have spaces in it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
    let time = |user: usize, system: usize| {
        let ticks = f64::from(ticks(user)?) + f64::from(ticks(system)?);
        Some(Duration::from_secs_f64(ticks / TICKS_A_SECOND))
    };
    Some(Process { parent: ticks(1)?, cpu: time(11, 12)?, children_cpu: time(13, 14)? })
}

/// Linux counts CPU time for programs in hundredths of a second on every platform.
const TICKS_A_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent() {
        let here = read(std::process::id()).unwrap();
        assert!(read(here.parent).is_some());
    }
}
