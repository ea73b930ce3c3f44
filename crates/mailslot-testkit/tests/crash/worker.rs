//! The processes of a round: workers, and producers.

use super::backend::{Backend, BoxError, CrashInbox, Place, Postgres, Sqlite};
use super::journal::{self, Journal};
use super::kill::{KillStore, KillSwitch, die};
use super::process::{Part, Role};
use super::produce::Producer;
use super::stuck;
use super::workload::{FollowUp, Kind, Step, script};
use mailslot_core::{Context, HandlerError, Retry, State};
use mailslot_engine::{Inbox, MaintenanceConfig, Store, WorkerConfig};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Long enough for a loaded machine, short enough that a killed worker's messages come back soon.
pub(crate) const LEASE: Duration = Duration::from_millis(400);

/// When a process gives up: a message that is lost never ends, and must fail the test instead of hanging it.
const STUCK: Duration = Duration::from_secs(60);

/// How often a producer of a storm accepts.
const PACE: Duration = Duration::from_millis(20);

/// The name of the producer in a round whose workers accept.
pub(crate) const EVERYBODY: &str = "all";

/// What handlers and callers write down, and where they die.
#[derive(Debug, Clone)]
pub(crate) struct Effects {
    pub(crate) journal: Journal,
    pub(crate) switch: KillSwitch,
}

async fn outside(step: Step, context: Context, State(effects): State<Effects>) -> Result<(), HandlerError> {
    let attempt = context.attempt().number;
    match step.kind {
        Kind::Refused => return Err(HandlerError::permanent("refused for good")),
        Kind::Flaky if attempt == 1 => return Err(HandlerError::retryable("not yet")),
        Kind::Slow => tokio::time::sleep(LEASE * 3 / 8).await,
        Kind::Deadly => die(),
        Kind::Plain | Kind::Flaky | Kind::Transactional => {}
    }
    effects.switch.pass("handler.before_effect");
    effects.journal.write(&format!("{} {attempt} {}", step.name(), context.envelope().seq));
    effects.switch.pass("handler.after_effect");
    Ok(())
}

async fn follow(_: FollowUp) {}

pub(crate) fn main(role: Role) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let work = async {
        match role.place.clone() {
            Place::Sqlite { dir } => play(Sqlite::new(&dir), role).await,
            Place::Postgres { dir, url, schema } => play(Postgres::new(&dir, &url, &schema), role).await,
        }
    };
    match runtime.expect("a runtime starts").block_on(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "a process of the crash test failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play<B: Backend>(backend: B, role: Role) -> Result<(), BoxError> {
    let switch = KillSwitch::parse(&role.kill);
    let effects = Effects { journal: Journal::open(backend.dir(), journal::EFFECTS), switch };
    let store = in_time(open(&backend)).await??;
    let inbox = build(&backend, store, &effects, role.attempts_max)?;
    let producer = Producer::new(&backend, &inbox, &effects);
    match role.part {
        Part::Produce(name) => in_time(producer.accept_slowly(script(&name, role.requests), PACE)).await?,
        Part::Work => Ok(inbox.run(std::future::pending()).await?),
        Part::Finish => run_until(&backend, &inbox, until_all_ended(&inbox)).await,
        Part::All => {
            let requests = script(EVERYBODY, role.requests);
            run_until(&backend, &inbox, async {
                producer.accept_all(requests).await?;
                until_all_ended(&inbox).await
            })
            .await
        }
    }
}

/// A server that is being restarted will be back.
async fn open<B: Backend>(backend: &B) -> Result<B::Store, BoxError> {
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    loop {
        tick.tick().await;
        match backend.open().await {
            Err(error) if error.is_transient() => {}
            opened => return Ok(opened?),
        }
    }
}

fn build<B: Backend>(
    backend: &B,
    store: B::Store,
    effects: &Effects,
    attempts_max: u32,
) -> Result<CrashInbox<B>, BoxError> {
    let leases = Journal::open(backend.dir(), journal::LEASES);
    let killing = KillStore { inner: store.clone(), switch: effects.switch.clone(), leases };
    let builder = Inbox::builder(killing)
        .state(effects.clone())
        .handler(outside)
        .handler(follow)
        .retry(Retry::fixed(Duration::from_millis(5)).max_attempts(attempts_max))
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
        });
    Ok(backend.handler_in_transaction(builder, store).build()?)
}

async fn run_until<B: Backend>(
    backend: &B,
    inbox: &CrashInbox<B>,
    end: impl Future<Output = Result<(), BoxError>>,
) -> Result<(), BoxError> {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.run(async { drop(stopped.await) }).await }
    });
    match in_time(end).await {
        Ok(ended) => ended?,
        Err(late) => return Err(format!("{late}{}", stuck::report(backend, inbox).await).into()),
    }
    let _ = stop.send(());
    in_time(running).await???;
    Ok(())
}

async fn in_time<T>(future: impl Future<Output = T>) -> Result<T, BoxError> {
    let ended = tokio::time::timeout(STUCK, future).await;
    ended.map_err(|_| format!("not at its end after {STUCK:?}").into())
}

/// Waits until no message is left that has not ended. What other processes end is seen at the next look.
async fn until_all_ended<S: Store + Clone>(inbox: &Inbox<S>) -> Result<(), BoxError> {
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    loop {
        tick.tick().await;
        match inbox.operator().counts().await {
            Ok(counts) if counts.iter().all(|count| count.status.is_terminal()) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
