//! A RabbitMQ of one's own: one node, with a port mapper of its own, so that nothing of it is left behind.

use crate::account::Account;
use crate::directory::Directory;
use crate::error::{Explain, ServerError};
use crate::launch::{self, end_of_log};
use crate::port::{free_port, start_on_a_free_port};
use crate::process::kill_all_in;
use crate::program::find_program;
use crate::readiness::wait_until;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Erlang takes some seconds to start, and more on a busy machine.
const START_TIME_MAX: Duration = Duration::from_secs(120);

/// Where packages put the programs: those in the search path of a Debian switch to the package's own account.
const PACKAGED_BIN: &str = "/usr/lib/rabbitmq/bin";

/// What a client of AMQP 0-9-1 says first.
const AMQP_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// A running RabbitMQ whose user `guest` may do everything. It is killed and removed when this is dropped.
#[derive(Debug)]
pub struct RabbitMq {
    directory: Directory,
    account: Account,
    bin: PathBuf,
    log: PathBuf,
    port: u16,
    /// Of the node itself, and of the mapper that tells it to others.
    inner_ports: [u16; 2],
    processes: Vec<Child>,
}

impl RabbitMq {
    /// Starts the server that is installed, and returns when it accepts connections.
    ///
    /// # Errors
    /// It is not installed, or it does not start; then the error shows the end of its log.
    pub fn start() -> Result<Self, ServerError> {
        Self::start_from(&Self::find()?, None)
    }

    /// The directory of the programs that are installed.
    ///
    /// # Errors
    /// There are none.
    pub fn find() -> Result<PathBuf, ServerError> {
        let packaged = PathBuf::from(PACKAGED_BIN);
        let in_path = || find_program("rabbitmq-server")?.parent().map(Path::to_owned);
        let found = packaged.join("rabbitmq-server").is_file().then_some(packaged).or_else(in_path);
        found.ok_or_else(|| {
            ServerError::new("RabbitMQ is not installed: `cargo xtask servers` says how to get it")
        })
    }

    /// Starts the server of this directory. Its log is in its own directory unless another place is given.
    pub fn start_from(bin: &Path, log: Option<PathBuf>) -> Result<Self, ServerError> {
        let account = Account::find()?;
        let directory = Directory::create("mailslot-rabbitmq-", account)?;
        let log = log.unwrap_or_else(|| directory.path().join("log"));
        let (bin, processes) = (bin.to_owned(), Vec::new());
        let mut server = Self { directory, account, bin, log, port: 0, inner_ports: [0; 2], processes };
        let log = server.log.clone();
        start_on_a_free_port(&log, |port| {
            (server.port, server.inner_ports) = (port, [free_port()?, free_port()?]);
            server.configure()?;
            server.launch()
        })?;
        Ok(server)
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Kills the server in the middle of whatever it does, and returns when it is gone.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        kill_all_in(self.directory.path())?;
        for mut process in self.processes.drain(..) {
            process.wait().explain(|| "wait for the end of RabbitMQ".into())?;
        }
        Ok(())
    }

    /// Starts the server again, on the same port and with its data. One that still runs is killed first.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.kill()?;
        self.launch()
    }

    /// Lets the server close every connection of its clients.
    pub fn close_connections(&self) -> Result<(), ServerError> {
        self.control(&["close_all_connections", "a test wants it"]).map(|_| ())
    }

    /// Runs a command of `rabbitmqctl` and gives what it prints.
    pub fn control(&self, arguments: &[&str]) -> Result<String, ServerError> {
        let mut command = self.command("rabbitmqctl");
        command.args(["--quiet", "--node", &self.node()]).args(arguments);
        let output = command.output().explain(|| "start rabbitmqctl".into())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(ServerError::new(format!("rabbitmqctl {arguments:?} failed: {}", text(&output.stderr))))
    }

    fn node(&self) -> String {
        format!("mailslot{}@localhost", self.port)
    }

    fn configure(&self) -> Result<(), ServerError> {
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{}\n\
             disk_free_limit.absolute = 50MB\n\
             log.console = true\n\
             log.console.level = warning\n",
            self.port
        );
        for (name, text) in [("rabbitmq.conf", settings.as_str()), ("plugins", "[].\n")] {
            let file = self.directory.path().join(name);
            std::fs::write(&file, text).explain(|| format!("write {}", file.display()))?;
            self.account.own(&file)?;
        }
        Ok(())
    }

    /// A program of RabbitMQ that knows this node, and nothing of what the machine is set up for.
    fn command(&self, program: &str) -> Command {
        let place = self.directory.path();
        let [node_port, mapper_port] = self.inner_ports.map(|port| port.to_string());
        let mut command = launch::command(&self.bin.join(program), place, self.account);
        command
            .env("RABBITMQ_NODENAME", self.node())
            .env("RABBITMQ_CONF_ENV_FILE", place.join("none"))
            .env("RABBITMQ_CONFIG_FILE", place.join("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", place.join("plugins"))
            .env("RABBITMQ_MNESIA_BASE", place.join("data"))
            .env("RABBITMQ_LOG_BASE", place.join("logs"))
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_DIST_PORT", node_port)
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            .env("ERL_EPMD_PORT", mapper_port)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1");
        command
    }

    fn launch(&mut self) -> Result<(), ServerError> {
        // In the foreground: one that the node starts by itself would leave the directory, and outlive everything.
        let mapper =
            find_program("epmd").ok_or_else(|| ServerError::new("Erlang's `epmd` is not installed"))?;
        let mut mapper = launch::command(&mapper, self.directory.path(), self.account);
        let port = self.inner_ports[1].to_string();
        mapper.args(["-port", &port, "-address", "127.0.0.1"]);
        self.processes.push(launch::start(&mut mapper, &self.log)?);
        let mut node = self.command("rabbitmq-server");
        self.processes.push(launch::start(node.stdin(Stdio::null()), &self.log)?);
        let port = self.port;
        let result = wait_until("start RabbitMQ", START_TIME_MAX, || {
            if self.has_ended()? {
                return Err(ServerError::new("RabbitMQ ended while it started"));
            }
            Ok(speaks_amqp(port))
        });
        if result.is_err() {
            self.kill()?;
        }
        result.map_err(|error| ServerError::new(format!("{error}; {}", end_of_log(&self.log))))
    }

    fn has_ended(&mut self) -> Result<bool, ServerError> {
        for process in &mut self.processes {
            if process.try_wait().explain(|| "ask for the end of RabbitMQ".into())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Whether somebody answers a client on this port.
fn speaks_amqp(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut frame = [0];
    stream.write_all(AMQP_HEADER).is_ok() && stream.read_exact(&mut frame).is_ok() && frame == [1]
}
