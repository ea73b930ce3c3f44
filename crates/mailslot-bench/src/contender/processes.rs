//! Workers in other processes of this program. They take their orders from standard input and report on standard output,
//! a line of JSON each.

use super::{Claims, Kind, Location, Setup, open_worker};
use crate::options::Durability;
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use mailslot_load::{Contender, Latencies, Spread, Worker, cpu_time, latencies};
use serde::{Deserialize, Serialize};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines, Stdin};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// How often a process says how far it is.
const REPORT: Duration = Duration::from_millis(5);

/// The argument that makes this program a worker.
pub(crate) const WORKER_ARGUMENT: &str = "--worker";

/// What a process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first one: what to work on. It travels by a pipe and not as an argument, because everybody on the machine
    /// sees arguments and a URL may have a password in it.
    Work {
        kind: Kind,
        durability: Durability,
        place: Location,
        concurrency: usize,
        handler: Option<Duration>,
        claims: (usize, usize),
    },
    /// Record how late handlers start, or stop recording.
    Record(bool),
}

/// What a process says.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Working {
        completed: u64,
        commits: u64,
        cpu: Duration,
    },
    /// The last one.
    Stopped {
        starts: Spread,
    },
}

/// A contender whose workers are in other processes.
pub(super) struct Processes {
    here: Arc<dyn Worker>,
    orders: Vec<String>,
    counts: Vec<Arc<Counts>>,
    recording: AtomicBool,
    record: Arc<Notify>,
    starts: Mutex<Latencies>,
}

/// What one process counted.
#[derive(Debug, Default)]
struct Counts {
    completed: AtomicU64,
    commits: AtomicU64,
    cpu_us: AtomicU64,
}

impl Processes {
    /// `here` accepts; `count` processes execute, which share the concurrency and the claims of the setup.
    pub(super) fn new(
        here: Arc<dyn Worker>,
        kind: Kind,
        setup: &Setup,
        count: usize,
    ) -> anyhow::Result<Self> {
        let share = |whole: usize| whole.div_ceil(count);
        let order = Order::Work {
            kind,
            durability: setup.durability,
            place: setup.place.clone(),
            concurrency: share(setup.concurrency),
            handler: setup.handler,
            claims: (share(setup.claims.connections), setup.claims.batch),
        };
        let order = serde_json::to_string(&order)?;
        Ok(Self {
            here,
            orders: vec![order; count],
            counts: (0..count).map(|_| Arc::default()).collect(),
            recording: AtomicBool::new(false),
            record: Arc::new(Notify::new()),
            starts: Mutex::new(latencies()),
        })
    }

    /// Tells every process when to record; ends only by an error.
    async fn pass_on(&self, inputs: &mut [ChildStdin]) -> anyhow::Result<()> {
        loop {
            self.record.notified().await;
            let order = serde_json::to_string(&Order::Record(self.recording.load(Ordering::Relaxed)))?;
            for input in &mut *inputs {
                tell(input, &order).await?;
            }
        }
    }

    fn sum(&self, count: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.counts.iter().map(|counts| count(counts).load(Ordering::Relaxed)).sum()
    }
}

#[async_trait]
impl Contender for Processes {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        self.here.accept(keyed).await
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        self.here.accept_batch(messages).await
    }

    fn commits(&self) -> u64 {
        self.here.commits() + self.sum(|counts| &counts.commits)
    }

    fn completed(&self) -> u64 {
        self.sum(|counts| &counts.completed)
    }

    fn refused(&self) -> u64 {
        self.here.refused()
    }

    fn cpu(&self) -> Duration {
        self.here.cpu() + Duration::from_micros(self.sum(|counts| &counts.cpu_us))
    }
}

#[async_trait]
impl Worker for Processes {
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let (mut listening, mut inputs) = (JoinSet::new(), Vec::new());
        for (order, counts) in self.orders.iter().zip(&self.counts) {
            let (child, mut input, output) = start()?;
            tell(&mut input, order).await?;
            inputs.push(input);
            listening.spawn(listen(child, output, counts.clone()));
        }
        tokio::select! {
            failed = self.pass_on(&mut inputs) => return failed,
            Some(early) = listening.join_next() => {
                early??;
                return Err(anyhow!("a worker process ended early"));
            }
            // A dropped sender means stop as well.
            _ = stop => {}
        }
        // The end of its input is what stops a process.
        drop(inputs);
        while let Some(stopped) = listening.join_next().await {
            self.starts.lock().unwrap_or_else(PoisonError::into_inner).add(stopped??)?;
        }
        Ok(())
    }

    fn record(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
        self.record.notify_one();
    }

    fn starts(&self) -> Latencies {
        std::mem::replace(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner), latencies())
    }
}

fn start() -> anyhow::Result<(Child, ChildStdin, ChildStdout)> {
    let program = std::env::current_exe().context("this program does not know its own file")?;
    let mut command = Command::new(program);
    command.arg(WORKER_ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().context("a worker process does not start")?;
    let input = child.stdin.take().context("its input is a pipe")?;
    let output = child.stdout.take().context("its output is a pipe")?;
    Ok((child, input, output))
}

async fn tell(input: &mut ChildStdin, order: &str) -> anyhow::Result<()> {
    input.write_all(format!("{order}\n").as_bytes()).await.context("a worker process went away")
}

/// Takes a process's reports to its end; returns how late its handlers started.
async fn listen(mut child: Child, output: ChildStdout, counts: Arc<Counts>) -> anyhow::Result<Latencies> {
    let mut lines = BufReader::new(output).lines();
    let mut starts = Err(anyhow!("a worker process failed"));
    while let Some(line) = lines.next_line().await? {
        match serde_json::from_str(&line)? {
            Report::Working { completed, commits, cpu } => {
                counts.completed.store(completed, Ordering::Relaxed);
                counts.commits.store(commits, Ordering::Relaxed);
                let cpu = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
                counts.cpu_us.store(cpu, Ordering::Relaxed);
            }
            Report::Stopped { starts: found } => starts = Ok(Latencies::from(&found)),
        }
    }
    child.wait().await?;
    starts
}

/// This process is a worker: does what its standard input says until that ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let first = orders.next_line().await?.context("no order came")?;
    let Order::Work { kind, durability, place, concurrency, handler, claims } = serde_json::from_str(&first)?
    else {
        return Err(anyhow!("the first order is what to work on"));
    };
    let claims = Claims { connections: claims.0, batch: claims.1 };
    let setup = Setup { durability, place, concurrency, handler, claims, max_age: None, processes: 0 };
    let worker = open_worker(kind, &setup).await?;
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run(stopped).await }
    });
    tokio::select! {
        obeyed = obey(&mut orders, &*worker) => obeyed?,
        failed = report(&*worker) => failed?,
    }
    // A worker that failed may not listen.
    let _ = stop.send(());
    running.await??;
    say(&working(&*worker)).await?;
    say(&Report::Stopped { starts: Spread::from(&worker.starts()) }).await
}

async fn obey(orders: &mut Lines<BufReader<Stdin>>, worker: &dyn Worker) -> anyhow::Result<()> {
    while let Some(line) = orders.next_line().await? {
        if let Order::Record(recording) = serde_json::from_str(&line)? {
            worker.record(recording);
        }
    }
    Ok(())
}

async fn report(worker: &dyn Worker) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(REPORT).await;
        say(&working(worker)).await?;
    }
}

fn working(worker: &dyn Worker) -> Report {
    Report::Working { completed: worker.completed(), commits: worker.commits(), cpu: cpu_time() }
}

async fn say(report: &Report) -> anyhow::Result<()> {
    let mut out = tokio::io::stdout();
    out.write_all(format!("{}\n", serde_json::to_string(report)?).as_bytes()).await?;
    Ok(out.flush().await?)
}
