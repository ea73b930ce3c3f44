//! The processes of a round: what each is told, and how one is started and killed.

use super::backend::Place;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const PART: &str = "MAILSLOT_CRASH_PART";
const DIR: &str = "MAILSLOT_CRASH_DIR";
const SERVER: &str = "MAILSLOT_CRASH_SERVER";
const SCHEMA: &str = "MAILSLOT_CRASH_SCHEMA";
const KILL: &str = "MAILSLOT_CRASH_KILL";
const ATTEMPTS: &str = "MAILSLOT_CRASH_ATTEMPTS";
const REQUESTS: &str = "MAILSLOT_CRASH_REQUESTS";

/// Attempts that no number of kills uses up.
pub(crate) const PLENTY: u32 = 1_000;

/// SIGKILL.
const KILLED: i32 = 9;

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Accepts the whole script of requests and works until nothing is left.
    All,
    /// Works until nothing is left.
    Finish,
    /// Works until it is killed.
    Work,
    /// Accepts the script of the producer of this name.
    Produce(String),
}

/// What a process is told.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) part: Part,
    pub(crate) place: Place,
    /// `point:n`, or nothing.
    pub(crate) kill: String,
    pub(crate) attempts_max: u32,
    /// How long the script is.
    pub(crate) requests: u32,
}

impl Role {
    pub(crate) fn new(part: Part, place: &Place, requests: u32) -> Self {
        Self { part, place: place.clone(), kill: String::new(), attempts_max: PLENTY, requests }
    }

    pub(crate) fn kill_at(mut self, point: String) -> Self {
        self.kill = point;
        self
    }

    pub(crate) fn from_env() -> Option<Self> {
        let var = |name| std::env::var(name).ok();
        let dir = PathBuf::from(var(DIR)?);
        let part = match var(PART)?.as_str() {
            "all" => Part::All,
            "finish" => Part::Finish,
            "work" => Part::Work,
            producer => Part::Produce(producer.to_owned()),
        };
        let place = match var(SERVER) {
            Some(url) => Place::Postgres { dir, url, schema: var(SCHEMA)? },
            None => Place::Sqlite { dir },
        };
        let number = |name| var(name).and_then(|text| text.parse().ok());
        Some(Self {
            part,
            place,
            kill: var(KILL)?,
            attempts_max: number(ATTEMPTS)?,
            requests: number(REQUESTS)?,
        })
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this executable has a path"));
        let part = match &self.part {
            Part::All => "all",
            Part::Finish => "finish",
            Part::Work => "work",
            Part::Produce(producer) => producer,
        };
        command.env(PART, part).env(DIR, self.place.dir()).env(KILL, &self.kill);
        command.env(ATTEMPTS, self.attempts_max.to_string()).env(REQUESTS, self.requests.to_string());
        if let Place::Postgres { url, schema, .. } = &self.place {
            command.env(SERVER, url).env(SCHEMA, schema);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end, or until it kills itself.
    pub(crate) fn run(&self) -> std::io::Result<ExitStatus> {
        self.command().status()
    }

    pub(crate) fn spawn(&self) -> std::io::Result<Child> {
        self.command().spawn()
    }
}

/// Whether it was killed; otherwise it must have come to its end.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let killed = status.signal() == Some(KILLED);
    assert!(killed || status.success(), "a process neither finished nor was killed: {status}");
    killed
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(future)
}

/// The one wait in this test that is no signal: its length is the point of it.
pub(crate) fn let_pass(moment: Duration) {
    block_on(async { tokio::time::sleep(moment).await });
}

/// Kills it after a moment; whether it was still there.
pub(crate) fn kill_after(child: &mut Child, moment: Duration) -> std::io::Result<bool> {
    let_pass(moment);
    child.kill()?;
    Ok(was_killed(child.wait()?))
}

/// Stops it for so long and lets it go on: what it decides then comes too late.
pub(crate) fn stall(child: &Child, length: Duration) -> std::io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP)?;
    let_pass(length);
    Ok(kill_process(pid, Signal::CONT)?)
}
