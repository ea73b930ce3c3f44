//! The worker process: accepts the whole workload again and again (the keys make that safe) and works on it until
//! nothing is left to do.

use super::kill::{KillStore, KillSwitch, die};
use super::workload::{Kind, Step};
use mailslot_core::{AcceptOutcome, Context, HandlerError, Retry, State};
use mailslot_engine::{Inbox, MaintenanceConfig, WorkerConfig};
use mailslot_store_sqlite::{SqliteStore, SqliteTx};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const DIR: &str = "MAILSLOT_CRASH_DIR";
const KILL: &str = "MAILSLOT_CRASH_KILL";
const ATTEMPTS: &str = "MAILSLOT_CRASH_ATTEMPTS";
const ACCEPTS: &str = "MAILSLOT_CRASH_ACCEPTS";

/// Long enough for a loaded machine, short enough that a killed worker's messages come back soon.
pub(crate) const LEASE: Duration = Duration::from_millis(400);

/// When a worker gives up: a message that is lost never ends, and must fail the test instead of hanging it.
const STUCK: Duration = Duration::from_secs(60);

/// What a worker process is told.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) dir: PathBuf,
    /// `point:n`, or nothing.
    pub(crate) kill: String,
    pub(crate) attempts_max: u32,
    /// Whether it accepts the workload, or only works.
    pub(crate) accepts: bool,
}

impl Role {
    pub(crate) fn from_env() -> Option<Self> {
        let var = |name| std::env::var(name).ok();
        let dir = var(DIR)?.into();
        let attempts_max = var(ATTEMPTS)?.parse().expect("a number of attempts");
        Some(Self { dir, kill: var(KILL)?, attempts_max, accepts: var(ACCEPTS)? == "yes" })
    }

    pub(crate) fn command(&self) -> std::process::Command {
        let mut command =
            std::process::Command::new(std::env::current_exe().expect("this executable has a path"));
        let accepts = if self.accepts { "yes" } else { "no" };
        command.env(DIR, &self.dir).env(KILL, &self.kill).env(ATTEMPTS, self.attempts_max.to_string());
        command.env(ACCEPTS, accepts).stdin(std::process::Stdio::null());
        command
    }
}

/// Lines in a file that outlive the process: each is one write, and SIGKILL loses no write that returned.
#[derive(Debug, Clone)]
struct Journal(Arc<File>);

impl Journal {
    fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path).expect("the journal opens");
        Self(Arc::new(file))
    }

    fn write(&self, line: &str) {
        (&*self.0).write_all(format!("{line}\n").as_bytes()).expect("the journal takes a line");
    }
}

#[derive(Debug, Clone)]
struct Effects {
    journal: Journal,
    switch: KillSwitch,
}

async fn outside(step: Step, context: Context, State(effects): State<Effects>) -> Result<(), HandlerError> {
    let attempt = context.attempt().number;
    match step.kind {
        Kind::Refused => return Err(HandlerError::permanent("refused for good")),
        Kind::Flaky if attempt == 1 => return Err(HandlerError::retryable("not yet")),
        Kind::Deadly => die(),
        Kind::Plain | Kind::Flaky | Kind::Transactional => {}
    }
    effects.switch.pass("handler.before_effect");
    effects.journal.write(&format!("{} {attempt} {}", step.index, context.envelope().seq));
    effects.switch.pass("handler.after_effect");
    Ok(())
}

async fn inside(
    step: InTransaction,
    State(effects): State<Effects>,
    mut tx: SqliteTx,
) -> Result<(), HandlerError> {
    effects.switch.pass("transaction.before_effect");
    sqlx::query("INSERT INTO effect (step) VALUES (?)").bind(step.0.index).execute(&mut *tx).await?;
    effects.switch.pass("transaction.after_effect");
    Ok(())
}

/// The same message under a contract of its own, so that only these handlers take a transaction.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct InTransaction(pub(crate) Step);

impl mailslot_core::Message for InTransaction {
    const NAME: &'static str = "crash.step-in-transaction";
    const VERSION: u32 = 1;
    type Codec = mailslot_core::Json;
}

pub(crate) fn main(role: Role) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.expect("a runtime starts").block_on(work(role)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "worker failed: {error}");
            ExitCode::FAILURE
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn work(role: Role) -> Result<(), BoxError> {
    let store = SqliteStore::connect(&role.dir.join("inbox.db").to_string_lossy()).await?;
    let switch = KillSwitch::parse(&role.kill);
    let effects = Effects { journal: Journal::open(&role.dir.join("effects.log")), switch: switch.clone() };
    let inbox = Inbox::builder(KillStore { inner: store.clone(), switch })
        .state(store)
        .state(effects)
        .handler(outside)
        .handler(inside)
        .retry(Retry::fixed(Duration::from_millis(5)).max_attempts(role.attempts_max))
        .worker(WorkerConfig {
            concurrency: 4,
            batch: 10,
            lease: LEASE,
            heartbeat: LEASE / 4,
            poll: Duration::from_millis(50),
            ..WorkerConfig::default()
        })
        .maintenance(MaintenanceConfig {
            recover_every: Duration::from_millis(50),
            ..MaintenanceConfig::default()
        })
        .build()?;
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.run(async { drop(stopped.await) }).await }
    });
    if role.accepts {
        accept_all(&inbox, &Journal::open(&role.dir.join("receipts.log"))).await?;
    }
    until_all_ended(&inbox).await?;
    let _ = stop.send(());
    running.await??;
    Ok(())
}

type TestInbox = Inbox<KillStore<SqliteStore>>;

async fn accept_all(inbox: &TestInbox, receipts: &Journal) -> Result<(), BoxError> {
    let mut accepts = tokio::task::JoinSet::new();
    for step in Step::all() {
        // Eight at a time, so that some share an append and kills fall between appends too.
        if accepts.len() >= 8 {
            accepts.join_next().await.expect("a task is there")??;
        }
        let (inbox, receipts) = (inbox.clone(), receipts.clone());
        accepts.spawn(async move { accept(&inbox, &receipts, step).await });
    }
    while let Some(accepted) = accepts.join_next().await {
        accepted??;
    }
    Ok(())
}

async fn accept(inbox: &TestInbox, receipts: &Journal, step: Step) -> Result<(), BoxError> {
    let (key, session) = (step.key(), step.session());
    let index = step.index;
    let receipt = if step.kind == Kind::Transactional {
        let request = inbox.accept(&InTransaction(step)).idempotency_key(&key);
        session.into_iter().fold(request, mailslot_engine::Accept::session).await?
    } else {
        let request = inbox.accept(&step).idempotency_key(&key);
        session.into_iter().fold(request, mailslot_engine::Accept::session).await?
    };
    let new = receipt.outcome == AcceptOutcome::Accepted;
    receipts.write(&format!("{index} {} {}", receipt.id, if new { "new" } else { "known" }));
    Ok(())
}

/// Waits until no message is left that has not ended. Whatever ends one in this process changes its stats; what other
/// processes end is seen at the next change or poll.
async fn until_all_ended(inbox: &TestInbox) -> Result<(), BoxError> {
    let ended = tokio::time::timeout(STUCK, until_counts_say_so(inbox)).await;
    ended.map_err(|_| format!("messages are still not at their end after {STUCK:?}"))?
}

async fn until_counts_say_so(inbox: &TestInbox) -> Result<(), BoxError> {
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    loop {
        tick.tick().await;
        let counts = inbox.operator().counts().await?;
        if counts.iter().all(|count| count.status.is_terminal()) {
            return Ok(());
        }
    }
}
