//! A pooler in transaction mode, in front of a server.

use crate::account::Account;
use crate::directory::Directory;
use crate::error::{Explain, ServerError};
use crate::launch::{self, end_of_log};
use crate::port::start_on_a_free_port;
use crate::process::kill_all_in;
use crate::program::find_program;
use crate::readiness::wait_until;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// It has nothing to load: whoever waits longer waits for nothing.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// The first release that keeps prepared statements alive across transactions, as 1.18 of Debian 12 does not.
const FIRST_WITH_PREPARED_STATEMENTS: (u32, u32) = (1, 21);

/// How a pooler is set up.
#[derive(Debug, Clone)]
pub struct PgbouncerConfig {
    /// The port on 127.0.0.1 of the server behind it.
    pub server_port: u16,
    /// How many connections it opens for one user in one database: the fewer, the more often clients change theirs.
    pub pool_size: u16,
}

/// A running pgbouncer in transaction mode that knows no prepared statements. It is killed and removed when this is
/// dropped.
#[derive(Debug)]
pub struct Pgbouncer {
    directory: Directory,
    account: Account,
    program: PathBuf,
    log: PathBuf,
    port: u16,
    process: Option<Child>,
}

impl Pgbouncer {
    /// Starts the pooler that is installed, and returns when it accepts connections.
    ///
    /// # Errors
    /// It is not installed, or it does not start; then the error shows the end of its log.
    pub fn start(config: PgbouncerConfig) -> Result<Self, ServerError> {
        let missing =
            || ServerError::new("pgbouncer is not installed: `cargo xtask servers` says how to get it");
        Self::start_from(&find_program("pgbouncer").ok_or_else(missing)?, config, None)
    }

    /// Starts this program. Its log is in its own directory unless another place is given.
    pub fn start_from(
        program: &Path,
        config: PgbouncerConfig,
        log: Option<PathBuf>,
    ) -> Result<Self, ServerError> {
        let account = Account::find()?;
        let directory = Directory::create("mailslot-pgbouncer-", account)?;
        let log = log.unwrap_or_else(|| directory.path().join("log"));
        let mut pooler =
            Self { directory, account, program: program.to_owned(), log, port: 0, process: None };
        let log = pooler.log.clone();
        start_on_a_free_port(&log, |port| {
            pooler.port = port;
            pooler.configure(&config)?;
            pooler.launch()
        })?;
        Ok(pooler)
    }

    /// Where clients connect to, as the superuser of the server behind it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Kills the pooler, and with it every connection, and returns when it is gone.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        kill_all_in(self.directory.path())?;
        if let Some(mut process) = self.process.take() {
            process.wait().explain(|| "wait for the end of pgbouncer".into())?;
        }
        Ok(())
    }

    /// Starts the pooler again, on the same port. One that still runs is killed first.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.kill()?;
        self.launch()
    }

    fn configure(&self, config: &PgbouncerConfig) -> Result<(), ServerError> {
        // 1.18 refuses to start with an option that it does not know.
        let keeps_statements = version_of(&self.program)? >= FIRST_WITH_PREPARED_STATEMENTS;
        let prepared = if keeps_statements { "max_prepared_statements = 0\n" } else { "" };
        let PgbouncerConfig { server_port, pool_size } = config;
        let text = format!(
            "[databases]
* = host=127.0.0.1 port={server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {}
unix_socket_dir =
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 500
auth_type = trust
auth_file = users
; Users that the file does not name are looked up in the server, by this one.
auth_user = postgres
ignore_startup_parameters = extra_float_digits
{prepared}",
            self.port
        );
        let write = |name: &str, text: &str| {
            let file = self.directory.path().join(name);
            std::fs::write(&file, text).explain(|| format!("write {}", file.display()))?;
            self.account.own(&file)
        };
        write("users", "\"postgres\" \"\"\n")?;
        write("pgbouncer.ini", &text)
    }

    fn launch(&mut self) -> Result<(), ServerError> {
        let before = ups_in(&self.log);
        let mut command = launch::command(&self.program, self.directory.path(), self.account);
        self.process = Some(launch::start(command.arg("pgbouncer.ini"), &self.log)?);
        let log = self.log.clone();
        let result = wait_until("start pgbouncer", START_TIME_MAX, || {
            if self.has_ended()? {
                return Err(ServerError::new("pgbouncer ended while it started"));
            }
            Ok(ups_in(&log) > before)
        });
        if result.is_err() {
            self.kill()?;
        }
        result.map_err(|error| ServerError::new(format!("{error}; {}", end_of_log(&self.log))))
    }

    fn has_ended(&mut self) -> Result<bool, ServerError> {
        let Some(process) = &mut self.process else {
            return Ok(true);
        };
        let status = process.try_wait().explain(|| "ask for the end of pgbouncer".into())?;
        Ok(status.is_some())
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// How often the log says that the pooler is up, which it does when it listens.
fn ups_in(log: &Path) -> usize {
    let text = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text).matches("process up: ").count()
}

fn version_of(program: &Path) -> Result<(u32, u32), ServerError> {
    let output = Command::new(program).arg("--version").output();
    let output = output.explain(|| format!("start {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    read_version(&text).ok_or_else(|| {
        ServerError::new(format!("failed to read the version of pgbouncer in `{}`", text.trim()))
    })
}

/// Reads the start of a text such as `PgBouncer 1.18.0`.
fn read_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("PgBouncer ")?.split('.');
    Some((numbers.next()?.trim().parse().ok()?, numbers.next()?.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_numbers() {
        assert_eq!(read_version("PgBouncer 1.18.0\nlibevent 2.1\n"), Some((1, 18)));
        assert_eq!(read_version("PgBouncer 1.9\n"), Some((1, 9)));
        assert_eq!(read_version("pgbouncer\n"), None);
    }
}
