//! The process that watches the worker: it starts it, starts it again when it dies, and stops it.

use super::folder::Folder;
use super::handlers::{ATTEMPTS_DEADLY, Handlers};
use super::notice::Notice;
use super::screen::Screen;
use super::worker::LEASE;
use anyhow::{Context, bail};
use mailslot::{Contract, Operator, Status};
use std::fs::OpenOptions;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How often the store is asked how far the work came.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// After so many deaths something else is wrong.
const DEATHS_MAX: u64 = 10;

/// A worker in a process of its own.
#[derive(Debug)]
struct Worker {
    child: Child,
    /// Closing it tells the worker to stop.
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts this executable again, in its other role.
    fn start(folder: &Folder, handlers: Handlers) -> anyhow::Result<Self> {
        let log = OpenOptions::new().append(true).create(true).open(folder.log())?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["demo", "--worker", handlers.as_str(), "--dir"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("the worker process does not start")?;
        let input = child.stdin.take().expect("its input is a pipe");
        let output = child.stdout.take().expect("its output is a pipe");
        Ok(Self { child, input, output: BufReader::new(output).lines() })
    }

    async fn stop(self) -> anyhow::Result<ExitStatus> {
        let Self { mut child, input, output } = self;
        drop(input);
        let status = child.wait().await?;
        // Its last words must not fill the pipe before it ends, so the pipe closes after it.
        drop(output);
        Ok(status)
    }
}

/// At most one worker, and what became of those before it.
#[derive(Debug)]
pub(super) struct Supervisor {
    folder: Folder,
    operator: Operator,
    worker: Option<Worker>,
    dying: Option<(Contract, u32)>,
    deaths: u64,
}

/// How many messages stand where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Not ended.
    pub(super) open: u64,
    /// Handled.
    pub(super) completed: u64,
    /// Given up.
    pub(super) dead: u64,
}

impl Supervisor {
    pub(super) fn new(folder: Folder, operator: Operator) -> Self {
        Self { folder, operator, worker: None, dying: None, deaths: 0 }
    }

    /// How many workers died.
    pub(super) fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Lets workers work until `done`, whatever happens to them.
    pub(super) async fn work(
        &mut self,
        handlers: Handlers,
        screen: &mut Screen,
        mut done: impl FnMut(Tally, &mut Screen) -> bool,
    ) -> anyhow::Result<()> {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            let worker = match &mut self.worker {
                Some(worker) => worker,
                none => none.insert(Worker::start(&self.folder, handlers)?),
            };
            tokio::select! {
                line = worker.output.next_line() => match line? {
                    Some(line) => self.listen(&line, screen),
                    None => self.bury(screen).await?,
                },
                _ = look.tick() => if done(self.tally().await?, screen) {
                    return self.stop().await;
                },
            }
        }
    }

    /// Stops the worker and waits for its end.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        let Some(worker) = self.worker.take() else { return Ok(()) };
        let status = worker.stop().await?;
        if status.success() { Ok(()) } else { self.fail(status) }
    }

    fn listen(&mut self, line: &str, screen: &Screen) {
        match Notice::read(line) {
            Some(Notice::Dying { contract, attempt }) => self.dying = Some((contract, attempt)),
            Some(Notice::TookBack { messages }) => {
                screen.say(format!("  The new worker took back what the dead one held ({messages})."));
            }
            None => {}
        }
    }

    /// The worker closed its output: it is dead.
    async fn bury(&mut self, screen: &Screen) -> anyhow::Result<()> {
        let Some(worker) = self.worker.take() else { return Ok(()) };
        let status = worker.stop().await?;
        self.deaths += 1;
        let Some((contract, attempt)) = self.dying.take().filter(|_| self.deaths < DEATHS_MAX) else {
            return self.fail(status);
        };
        let name = contract.name();
        screen.say(format!("The worker died ({status}) in {name}, attempt {attempt} of {ATTEMPTS_DEADLY}."));
        screen.say(format!("  Its leases run out within {} s; a new worker takes over.", LEASE.as_secs()));
        Ok(())
    }

    fn fail(&self, status: ExitStatus) -> anyhow::Result<()> {
        bail!("the worker process failed ({status}): see {}", self.folder.log().display())
    }

    pub(super) async fn tally(&self) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for count in self.operator.counts().await? {
            match count.status {
                Status::Completed => tally.completed += count.messages,
                Status::DeadLettered => tally.dead += count.messages,
                status if status.is_terminal() => {}
                _ => tally.open += count.messages,
            }
        }
        Ok(tally)
    }
}
