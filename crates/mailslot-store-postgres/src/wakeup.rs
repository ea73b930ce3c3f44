//! Waking workers: those of this process directly, those of other processes by a notification.
//!
//! A notification inside an accept's transaction would take a lock of the whole server until its commit, and the commits
//! of all accepts would wait for each other. So it is a transaction of its own, one for many accepts: the first of a
//! burst is announced at once, the others together after a pause.

use crate::config::PostgresOptions;
use crate::connection::Sessions;
use crate::link::Param;
use crate::queries;
use crate::store::Shared;
use mailslot_core::{StoreError, WakeMode, WorkSignal};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long after an accept in the caller's transaction its commit is looked for: soon, and then less and less soon.
const COMMIT_EXPECTED: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
];

/// Pause before the listener connects again, at first and at the most.
const RECONNECT_MIN: Duration = Duration::from_millis(100);
const RECONNECT_MAX: Duration = Duration::from_secs(10);

/// How often a listener that hears nothing makes sure that it would: a connection that a firewall dropped looks quiet.
const PROBE_EVERY: Duration = Duration::from_secs(30);

/// How long its own notification may take to come back.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How work is noticed.
#[derive(Debug)]
pub(crate) struct Wakeup {
    signal: WorkSignal,
    /// Others are to be told.
    others: Notify,
    /// A caller's transaction will commit soon.
    expected: Notify,
    /// The last handle of the store is gone.
    pub(crate) closing: CancellationToken,
    /// What our own notifications carry, so that we do not wake ourselves.
    origin: String,
}

impl Default for Wakeup {
    fn default() -> Self {
        let signal = WorkSignal::new();
        signal.set_mode(WakeMode::Connecting);
        Self {
            signal,
            others: Notify::new(),
            expected: Notify::new(),
            closing: CancellationToken::new(),
            origin: Uuid::new_v4().simple().to_string(),
        }
    }
}

impl Wakeup {
    pub(crate) fn signal(&self) -> &WorkSignal {
        &self.signal
    }

    /// There may be work: wakes this process now, and others soon.
    pub(crate) fn notify(&self) {
        self.signal.notify();
        self.others.notify_one();
    }

    /// There will be work when a transaction of the caller's commits, which nobody tells.
    pub(crate) fn expect(&self) {
        self.expected.notify_one();
    }

    pub(crate) fn mode(&self) -> WakeMode {
        self.signal.mode().unwrap_or(WakeMode::Connecting)
    }

    fn set_mode(&self, mode: WakeMode) {
        if self.signal.set_mode(mode) {
            tracing::info!(mode = mode.as_str(), "how the accepts of other processes are noticed");
        }
    }
}

/// Starts what a store needs. Each task ends with the last handle of the store.
pub(crate) fn start(shared: &Arc<Shared>, sessions: Sessions) {
    let wakeup = || Arc::clone(&shared.wakeup);
    tokio::spawn(look_for_commits(Arc::downgrade(shared), wakeup()));
    if !shared.options.listen {
        shared.wakeup.set_mode(WakeMode::PollingByChoice);
    } else if sessions == Sessions::Shared {
        shared.wakeup.set_mode(WakeMode::PollingBehindPooler);
    } else {
        tokio::spawn(listen(shared.options.clone(), wakeup()));
    }
    if shared.options.listen {
        tokio::spawn(tell_others(Arc::downgrade(shared), wakeup()));
    }
}

/// Waits for one of the store's events without keeping the store alive. `None`: the store is gone.
async fn next(shared: &Weak<Shared>, wakeup: &Wakeup, event: &Notify) -> Option<Arc<Shared>> {
    let happened = wakeup.closing.run_until_cancelled(event.notified()).await;
    happened.and_then(|()| shared.upgrade())
}

async fn look_for_commits(shared: Weak<Shared>, wakeup: Arc<Wakeup>) {
    while next(&shared, &wakeup, &wakeup.expected).await.is_some() {
        let mut waited = Duration::ZERO;
        for after in COMMIT_EXPECTED {
            tokio::time::sleep(after.saturating_sub(waited)).await;
            waited = after;
            wakeup.notify();
        }
    }
}

async fn tell_others(shared: Weak<Shared>, wakeup: Arc<Wakeup>) {
    while let Some(strong) = next(&shared, &wakeup, &wakeup.others).await {
        // A failure costs others one poll; whoever uses the store meets its cause and reports it.
        if let Err(error) = tell(&strong).await {
            tracing::debug!(%error, "other processes could not be notified");
        }
        let pause = strong.options.notify_every;
        drop(strong);
        wakeup.closing.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
}

async fn tell(shared: &Shared) -> Result<(), StoreError> {
    const OPERATION: &str = "notify";
    let mut lent = shared.aside.single(OPERATION).await?;
    {
        let mut link = lent.link();
        let channel = channel(&shared.options);
        let params = vec![Param::text(&channel), Param::text(&shared.wakeup.origin)];
        shared.session(&mut link, OPERATION).row(queries::WAKEUP_NOTIFY, params).await?;
    }
    lent.finish().await
}

fn channel(options: &PostgresOptions) -> String {
    options.schema.clone()
}

async fn listen(options: PostgresOptions, wakeup: Arc<Wakeup>) {
    let mut pause = RECONNECT_MIN;
    while let Some(heard) = wakeup.closing.run_until_cancelled(hear(&options, &wakeup)).await {
        // One that had listened begins anew with the short pause.
        let had_listened = wakeup.mode() == WakeMode::Listening;
        wakeup.set_mode(WakeMode::Connecting);
        if let Err(error) = heard {
            tracing::debug!(%error, "the listener has no connection; workers poll until it is back");
        }
        pause = if had_listened { RECONNECT_MIN } else { (pause * 2).min(RECONNECT_MAX) };
        wakeup.closing.run_until_cancelled(tokio::time::sleep(jittered(pause))).await;
    }
}

/// Not all processes at once: they have all lost the same server.
fn jittered(pause: Duration) -> Duration {
    let part = Uuid::new_v4().as_bytes()[0];
    pause.mul_f64(0.5 + f64::from(part) / 255.0)
}

/// Passes notifications on until the connection breaks or hears nothing of our own any more.
async fn hear(options: &PostgresOptions, wakeup: &Wakeup) -> Result<(), sqlx::Error> {
    let mut listener = connect(&options.connect.clone().disable_statement_logging()).await?;
    listener.listen(&channel(options)).await?;
    // Wakes the workers, too: for what was accepted while nobody listened.
    wakeup.set_mode(WakeMode::Listening);
    let mut patience = PROBE_EVERY;
    loop {
        match tokio::time::timeout(patience, listener.try_recv()).await {
            Ok(received) => {
                let Some(notification) = received? else { return Ok(()) };
                patience = PROBE_EVERY;
                if notification.payload() != wakeup.origin {
                    wakeup.signal.notify();
                }
            }
            // Our own notification comes back like any other, and ends the quiet.
            Err(_) if patience == PROBE_EVERY => {
                wakeup.others.notify_one();
                patience = PROBE_TIMEOUT;
            }
            Err(_) => return Ok(()),
        }
    }
}

/// A listener with a connection of its own.
async fn connect(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false)
        // The driver would complain of each broken connection that comes back, and of a server that is slow to return.
        .after_release(|_, _| Box::pin(async { Ok(false) }))
        .acquire_slow_threshold(Duration::MAX)
        .connect_with(options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.ignore_pool_close_event(true);
    Ok(listener)
}
