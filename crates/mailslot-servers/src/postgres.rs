//! A PostgreSQL server of one's own.

use crate::account::Account;
use crate::directory::Directory;
use crate::environment;
use crate::error::{Explain, ServerError};
use crate::launch::{self, end_of_log};
use crate::port::start_on_a_free_port;
use crate::process::{kill_all_in, pause_all_in, processes_in, resume_all_in, send};
use crate::readiness::wait_until;
use crate::shared_memory;
use rustix::process::{Pid, Signal};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// A start after a crash replays the log; on a busy machine even an empty server takes seconds.
const START_TIME_MAX: Duration = Duration::from_secs(120);

/// How long an orderly stop may take before it counts as failed.
const STOP_TIME_MAX: Duration = Duration::from_secs(60);

/// What every server is set to. What a test needs otherwise comes after it and wins.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 300
# Many schemas with many partitions come and go in one server.
max_locks_per_transaction = 256
# Files in the data directory, so that a killed server leaves none elsewhere.
dynamic_shared_memory_type = mmap
log_line_prefix = '%m [%p] %q%a '
";

/// For tests that ask nothing of the disk.
const WITHOUT_FSYNC: &str = "
fsync = off
full_page_writes = off
";

/// Which PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PostgresRelease {
    /// The oldest that Mailslot supports, which lacks what newer ones have.
    #[default]
    Oldest,
    /// The newest that the tests know.
    Newest,
}

/// How a server is set up.
#[derive(Debug, Clone, Default)]
pub struct PostgresConfig {
    /// Which PostgreSQL it is.
    pub release: PostgresRelease,
    /// Whether it writes through to the disk. Off is quicker, and still keeps everything when the server is killed.
    pub fsync: bool,
    /// Further lines of `postgresql.conf`, such as `wal_level = logical`.
    pub settings: Vec<String>,
}

/// A running PostgreSQL server, with one superuser `postgres` and no password. It is killed and removed when this is
/// dropped.
#[derive(Debug)]
pub struct PostgresServer {
    directory: Directory,
    account: Account,
    bin: PathBuf,
    log: PathBuf,
    port: u16,
    postmaster: Option<Child>,
}

impl PostgresServer {
    /// Makes and starts a server, and returns when it accepts connections.
    ///
    /// # Errors
    /// It does not start; the error shows the end of its log.
    ///
    /// # Panics
    /// The variable that says where PostgreSQL is installed is not set: see [`environment`].
    pub fn start(config: PostgresConfig) -> Result<Self, ServerError> {
        let bin = environment::postgres_bin(config.release);
        Self::start_from(&bin, config, None)
    }

    /// Starts a server whose programs are in `bin`. Its log is in its own directory unless another place is given.
    pub fn start_from(bin: &Path, config: PostgresConfig, log: Option<PathBuf>) -> Result<Self, ServerError> {
        let mut server = Self::without_data(bin, log)?;
        server.make_data()?;
        server.configure(&config)?;
        server.start_anywhere()?;
        Ok(server)
    }

    /// Starts a hot standby of this server: it follows it, and answers who only reads, until it is promoted.
    ///
    /// # Errors
    /// The server cannot be copied, or the copy does not start.
    pub fn start_standby(&self) -> Result<Self, ServerError> {
        let mut standby = Self::without_data(&self.bin, None)?;
        let copy = ["-D", "data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-d"];
        run(standby.command("pg_basebackup").args(copy).arg(self.url()), "copy the server")?;
        standby.start_anywhere()?;
        Ok(standby)
    }

    fn without_data(bin: &Path, log: Option<PathBuf>) -> Result<Self, ServerError> {
        let account = Account::find()?;
        let directory = Directory::create("mailslot-postgres-", account)?;
        let log = log.unwrap_or_else(|| directory.path().join("log"));
        Ok(Self { directory, account, bin: bin.to_owned(), log, port: 0, postmaster: None })
    }

    fn start_anywhere(&mut self) -> Result<(), ServerError> {
        let log = self.log.clone();
        start_on_a_free_port(&log, |port| {
            self.port = port;
            self.launch()
        })
    }

    /// Where clients connect to, as the superuser.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The port on 127.0.0.1; the same for as long as the server exists.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its programs, such as `psql`.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Kills every process of the server at once, as a crash does, and returns when they are gone.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        // The postmaster first: it would take the death of another process for a crash that it has to repair.
        if let Some(postmaster) = &mut self.postmaster {
            postmaster.kill().explain(|| "kill PostgreSQL".into())?;
        }
        kill_all_in(self.directory.path())?;
        self.reap()
    }

    /// Stops the server without writing anything back: connections break, and the next start recovers.
    pub fn stop_immediate(&mut self) -> Result<(), ServerError> {
        self.stop(Signal::QUIT)
    }

    /// Stops the server as an administrator does: sessions are ended, and everything is written back.
    pub fn stop_fast(&mut self) -> Result<(), ServerError> {
        self.stop(Signal::INT)
    }

    /// Starts the server again, on the same port and data. One that still runs is stopped first.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        if self.postmaster.is_some() {
            self.stop_fast()?;
        }
        self.launch()
    }

    /// Stops the time of every process of the server: connections stay open, and nothing answers.
    pub fn pause(&mut self) -> Result<(), ServerError> {
        pause_all_in(self.directory.path(), self.pid()?)
    }

    /// Lets a paused server go on.
    pub fn resume(&mut self) -> Result<(), ServerError> {
        resume_all_in(self.directory.path())
    }

    /// How many processes the server has: none after a kill or a stop.
    pub fn count_processes(&self) -> usize {
        processes_in(self.directory.path()).len()
    }

    fn make_data(&self) -> Result<(), ServerError> {
        let options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"];
        run(self.command("initdb").args(["-D", "data"]).args(options), "make a database directory")
    }

    fn configure(&self, config: &PostgresConfig) -> Result<(), ServerError> {
        let file = self.data().join("postgresql.conf");
        let read = std::fs::read_to_string(&file);
        let mut text = read.explain(|| "read the configuration of PostgreSQL".into())?;
        text.push_str(SETTINGS);
        if !config.fsync {
            text.push_str(WITHOUT_FSYNC);
        }
        for line in &config.settings {
            let _ = writeln!(text, "{line}");
        }
        std::fs::write(&file, text).explain(|| "write the configuration of PostgreSQL".into())
    }

    fn launch(&mut self) -> Result<(), ServerError> {
        let mut command = self.command("postgres");
        command.args(["-D", "data", "-p", &self.port.to_string()]);
        self.postmaster = Some(launch::start(&mut command, &self.log)?);
        let result = self.wait_for_start();
        if result.is_err() {
            self.kill()?;
        }
        result
    }

    fn wait_for_start(&mut self) -> Result<(), ServerError> {
        let (log, pid_file) = (self.log.clone(), self.data().join("postmaster.pid"));
        let pid = self.pid()?.as_raw_nonzero().to_string();
        let result = wait_until("start PostgreSQL", START_TIME_MAX, || {
            if self.has_ended()? {
                return Err(ServerError::new("PostgreSQL ended while it started"));
            }
            let text = std::fs::read_to_string(&pid_file).unwrap_or_default();
            Ok(says_ready(&text, &pid))
        });
        result.map_err(|error| ServerError::new(format!("{error}; {}", end_of_log(&log))))
    }

    fn has_ended(&mut self) -> Result<bool, ServerError> {
        let Some(postmaster) = &mut self.postmaster else {
            return Ok(true);
        };
        let status = postmaster.try_wait().explain(|| "ask for the end of PostgreSQL".into())?;
        Ok(status.is_some())
    }

    fn stop(&mut self, signal: Signal) -> Result<(), ServerError> {
        send(self.pid()?, signal)?;
        wait_until("stop PostgreSQL", STOP_TIME_MAX, || self.has_ended())?;
        // After an immediate stop the last of its processes may still be about to end.
        kill_all_in(self.directory.path())?;
        self.reap()
    }

    fn reap(&mut self) -> Result<(), ServerError> {
        if let Some(mut postmaster) = self.postmaster.take() {
            postmaster.wait().explain(|| "wait for the end of PostgreSQL".into())?;
        }
        Ok(())
    }

    fn pid(&self) -> Result<Pid, ServerError> {
        let postmaster = self.postmaster.as_ref();
        postmaster.map(Pid::from_child).ok_or_else(|| ServerError::new("PostgreSQL does not run"))
    }

    fn command(&self, program: &str) -> Command {
        launch::command(&self.bin.join(program), self.directory.path(), self.account)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ = self.kill();
        shared_memory::release(&self.data());
        if std::thread::panicking() {
            show_end_of_log(&self.log);
        }
    }
}

/// Runs a program to its end. Which one it was is in the error.
fn run(command: &mut Command, aim: &str) -> Result<(), ServerError> {
    let program = command.get_program().to_string_lossy().into_owned();
    // If it does not start, the servers' account mostly cannot reach its program or its directory.
    let place = command.get_current_dir().unwrap_or(Path::new(".")).display().to_string();
    let output =
        command.output().explain(|| format!("start {program} in {place} by the servers' account"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(ServerError::new(format!("failed to {aim}: {program}: {errors}")))
}

/// The log goes with its server, but whoever reads of a failed test needs it.
#[expect(clippy::print_stderr, reason = "a test that fails shows what its server said")]
fn show_end_of_log(log: &Path) {
    eprintln!("{}", end_of_log(log));
}

/// Whether the file that a server keeps about itself says that it accepts connections; `pg_ctl --wait` asks the same.
///
/// The first line is whose file it is, so that neither the file of a killed server nor another server on the same port
/// is taken for this one. The eighth line says how far it is. <https://www.postgresql.org/docs/current/app-pg-ctl.html>
fn says_ready(pid_file: &str, pid: &str) -> bool {
    let mut lines = pid_file.lines().map(str::trim);
    lines.next() == Some(pid) && matches!(lines.nth(6), Some("ready" | "standby"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "37\n/data\n1764543212\n15432\n\n127.0.0.1\n  1839502     32770\n";

    #[test]
    fn a_server_is_ready_when_its_own_file_says_so() {
        assert!(says_ready(&format!("{FILE}ready   \n"), "37"));
        assert!(says_ready(&format!("{FILE}standby \n"), "37"));
    }

    #[test]
    fn a_server_that_starts_or_was_killed_is_not_ready() {
        assert!(!says_ready(&format!("{FILE}starting\n"), "37"));
        assert!(!says_ready(&format!("{FILE}ready   \n"), "38"));
        assert!(!says_ready(FILE, "37"));
        assert!(!says_ready("", "37"));
    }
}
