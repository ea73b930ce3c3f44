//! A server of a test's own, with an inbox on it that works, and callers that accept.

use crate::log::Log;
use mailslot_core::{InboxStore as _, OperatorStore as _, State, Status, StoreErrorKind};
use mailslot_engine::{AcceptError, Inbox, MaintenanceConfig, WorkerConfig};
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::engine::Order;
use mailslot_testkit::servers::{PostgresConfig, PostgresServer, ServerError};
use sqlx::{Connection as _, PgConnection};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout};
use tracing::subscriber::DefaultGuard;

/// When a test gives up what should have happened long ago.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// For how long a call of these tests waits for a server that does not answer.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(400);

/// What was claimed by a call whose answer was lost comes back after this time.
const LEASE: Duration = Duration::from_secs(2);

/// Awaits what has to happen.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

/// Asks again and again: for what a server outside gives no signal of.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let mut tick = interval(Duration::from_millis(10));
    let asked = async {
        while !holds().await {
            tick.tick().await;
        }
    };
    soon(what, asked).await;
}

/// How a store of these tests is opened: calls do not wait for long.
pub(crate) fn options(url: &str) -> PostgresOptions {
    url.parse::<PostgresOptions>().unwrap().call_timeout(CALL_TIMEOUT)
}

pub(crate) async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

/// Runs statements as the superuser.
pub(crate) async fn by_hand(url: &str, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut connect(url).await).await.unwrap();
}

pub(crate) fn order(number: u32) -> Order {
    Order { number, note: String::new() }
}

/// Accepts an order under a key of its own.
pub(crate) async fn accept(inbox: &Inbox<PostgresStore>, number: u32) -> Result<(), AcceptError> {
    inbox.accept(&order(number)).idempotency_key(format!("order:{number}")).await.map(|_| ())
}

/// What kind of failure of the store an accept met.
pub(crate) fn kind_of(error: &AcceptError) -> StoreErrorKind {
    match error {
        AcceptError::Store(error) => error.kind(),
        error => panic!("no failure of the store: {error}"),
    }
}

/// A private server, without waiting for the disk.
pub(crate) async fn server(settings: &[&str]) -> PostgresServer {
    let settings = settings.iter().map(|&line| line.to_owned()).collect();
    let config = PostgresConfig { settings, ..PostgresConfig::default() };
    blocking(move || PostgresServer::start(config)).await
}

async fn blocking<T: Send + 'static>(call: impl FnOnce() -> Result<T, ServerError> + Send + 'static) -> T {
    tokio::task::spawn_blocking(call).await.unwrap().unwrap()
}

/// How often each order was handled.
type Handled = BTreeMap<u32, u32>;

async fn handle(order: Order, State(handled): State<watch::Sender<Handled>>) {
    handled.send_modify(|handled| *handled.entry(order.number).or_default() += 1);
}

/// An inbox whose worker runs.
pub(crate) struct Working {
    pub(crate) inbox: Inbox<PostgresStore>,
    handled: watch::Receiver<Handled>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Working {
    /// Works with short intervals.
    pub(crate) fn start(store: PostgresStore) -> Self {
        Self::start_with(store, Duration::from_millis(50))
    }

    pub(crate) fn start_with(store: PostgresStore, poll: Duration) -> Self {
        let (sender, handled) = watch::channel(Handled::new());
        let often = Duration::from_millis(100);
        let inbox = Inbox::builder(store)
            .state(sender)
            .handler(handle)
            .worker(WorkerConfig { poll, lease: LEASE, heartbeat: often, ..WorkerConfig::default() })
            .maintenance(MaintenanceConfig { recover_every: often, ..MaintenanceConfig::default() })
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel();
        let working = inbox.clone();
        let running = tokio::spawn(async move { working.run(async { drop(stopped.await) }).await.unwrap() });
        Self { inbox, handled, stop, running }
    }

    pub(crate) async fn stop(self) {
        drop(self.stop);
        soon("the worker stops", self.running).await.unwrap();
    }

    pub(crate) async fn until_handled(&mut self, number: u32) {
        let handled = self.handled.wait_for(|handled| handled.contains_key(&number));
        soon(&format!("order {number} is handled"), handled).await.unwrap();
    }

    /// Waits until the first `accepted` orders are completed; then nothing may be left over, and all must hold.
    pub(crate) async fn assert_nothing_is_lost(&mut self, accepted: u32) {
        let all = self.handled.wait_for(|handled| (0..accepted).all(|number| handled.contains_key(&number)));
        let are_handled = timeout(PATIENCE, all).await.is_ok();
        let store = self.inbox.store().clone();
        assert!(are_handled, "{accepted} orders: {:?}; {:?}", self.handled.borrow(), store.counts().await);
        eventually("what was handled is completed", async || {
            match store.counts().await {
                Ok(counts) => counts.iter().all(|count| count.status == Status::Completed),
                // An operator's connection that nobody used since the server ended it.
                Err(error) => {
                    assert!(error.is_transient(), "{error}");
                    false
                }
            }
        })
        .await;
        let messages: u64 = store.counts().await.unwrap().iter().map(|count| count.messages).sum();
        assert!(messages == u64::from(accepted), "{messages} messages of {accepted}");
        assert_eq!(store.check().await.unwrap(), []);
    }

    /// Accepts one order after the other, each again and again until it is accepted.
    pub(crate) fn load(&self) -> Load {
        let (sender, progress) = watch::channel(Progress::default());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept_until(self.inbox.clone(), sender, stopped));
        Load { progress, stop, task }
    }
}

/// A server, an inbox that works on it, and what they say.
pub(crate) struct Rig {
    pub(crate) working: Working,
    pub(crate) log: Log,
    server: Option<PostgresServer>,
    _listening: DefaultGuard,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let (log, listening) = Log::begin();
        let server = server(&[]).await;
        let store = PostgresStore::open(options(&server.url())).await.unwrap();
        Self { working: Working::start(store), log, server: Some(server), _listening: listening }
    }

    pub(crate) fn url(&self) -> String {
        self.server.as_ref().unwrap().url()
    }

    /// Does something to the server, while everything else goes on.
    pub(crate) async fn server(
        &mut self,
        call: impl FnOnce(&mut PostgresServer) -> Result<(), ServerError> + Send + 'static,
    ) {
        let mut server = self.server.take().unwrap();
        self.server = Some(blocking(move || call(&mut server).map(|()| server)).await);
    }
}

/// What a caller that accepts has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) accepted: u32,
    pub(crate) errors: Vec<StoreErrorKind>,
    pub(crate) last_error: String,
}

/// A caller that accepts.
pub(crate) struct Load {
    progress: watch::Receiver<Progress>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn accept_until(
    inbox: Inbox<PostgresStore>,
    progress: watch::Sender<Progress>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut pace = interval(Duration::from_millis(5));
    for number in 0.. {
        while let Err(error) = accept(&inbox, number).await {
            progress.send_modify(|progress| {
                progress.errors.push(kind_of(&error));
                progress.last_error = error.to_string();
            });
            pace.tick().await;
        }
        progress.send_modify(|progress| progress.accepted += 1);
        pace.tick().await;
        if !matches!(stopped.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
            return;
        }
    }
}

impl Load {
    /// Waits until so many more were accepted.
    pub(crate) async fn until_accepted(&mut self, more: u32) {
        let wanted = self.progress.borrow().accepted + more;
        let accepted = self.progress.wait_for(|progress| progress.accepted >= wanted);
        soon("orders are accepted", accepted).await.unwrap();
    }

    /// Waits until an accept fails, and says how.
    pub(crate) async fn until_failed(&mut self) -> (StoreErrorKind, String) {
        let failures = self.progress.borrow().errors.len();
        let failed = self.progress.wait_for(|progress| progress.errors.len() > failures);
        let progress = soon("an accept fails", failed).await.unwrap();
        (progress.errors[failures], progress.last_error.clone())
    }

    /// Ends it after the accept that is under way.
    pub(crate) async fn end(self) -> Progress {
        drop(self.stop);
        soon("the last order is accepted", self.task).await.unwrap();
        self.progress.borrow().clone()
    }
}

/// How long something took.
pub(crate) async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (future.await, begun.elapsed())
}

/// What the server's clock says: the smallest call there is.
pub(crate) async fn answers(store: &PostgresStore) -> bool {
    store.now().await.is_ok()
}
