//! Connections of a store: lent for one call, and taken back only after a call that ended well.
//!
//! A connection whose call failed half-way, ran out of time or was given up by its caller is in an unknown state. It is
//! closed, and the server rolls back what it was doing. The driver's own pool would test each connection with a round
//! trip whenever it comes back, which is more than many of our calls take.

use crate::config::PostgresOptions;
use crate::error::During;
use crate::link_sqlx::SqlxLink;
use crate::pool::{Pool, Pools};
use mailslot_core::{StoreError, StoreErrorKind};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Whether a session of the server is ours for as long as the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// It is: settings and prepared statements stay.
    Own,
    /// A pooler hands it to others between transactions, so nothing may be left in it.
    Shared,
}

/// Forbids the plans that are right only for the size that a table had when they were made: a statement that was
/// prepared on an empty table would go on to scan it when it is large. Every hot statement goes by a key.
const PINS: &str = "enable_seqscan = off; enable_bitmapscan = off; enable_hashjoin = off; \
                    enable_mergejoin = off; plan_cache_mode = force_generic_plan";

/// How many connections operators and maintenance have.
const FREE: u32 = 2;

/// For how long an unused connection is trusted. Later it is tried first, because the server may have been restarted
/// meanwhile, and an accept that fails is worse than a round trip.
const TRUSTED: Duration = Duration::from_millis(250);

/// A statement whose caller has gone must not hold its locks for longer than the caller would have waited: how long one
/// may take, and how long a transaction may wait for the next.
pub(crate) fn bounds_millis(options: &PostgresOptions) -> [u128; 2] {
    let millis = options.call_timeout.as_millis();
    [millis, 2 * millis]
}

fn bounds(options: &PostgresOptions) -> String {
    let [statement, idle] = bounds_millis(options);
    // Compiling a statement takes longer than any of ours runs.
    format!("jit = off; statement_timeout = {statement}; idle_in_transaction_session_timeout = {idle}")
}

/// Connections of one kind.
#[derive(Debug)]
pub(crate) struct Connections {
    options: PgConnectOptions,
    sessions: Sessions,
    /// What a session is set to, as statements.
    setup: String,
    pools: Pools,
    most: u32,
    timeout: Duration,
    /// Counts breakages: connections that are older than the last one are suspect, because a restarted server has
    /// closed them all.
    era: AtomicU64,
}

impl Connections {
    /// For accepts, claims and settlements.
    pub(crate) fn pinned(options: &PostgresOptions, sessions: Sessions) -> Arc<Self> {
        Self::new(options, sessions, options.connections, &format!("{PINS}; {}", bounds(options)))
    }

    /// For operators and maintenance, whose statements may scan.
    pub(crate) fn free(options: &PostgresOptions, sessions: Sessions) -> Arc<Self> {
        Self::new(options, sessions, FREE, &bounds(options))
    }

    /// For what a store does by itself, so that it is in nobody's way.
    pub(crate) fn aside(options: &PostgresOptions, sessions: Sessions) -> Arc<Self> {
        Self::new(options, sessions, 1, &bounds(options))
    }

    /// For handlers that run in their transaction: without bounds, because their statements are the application's, and
    /// their leases already say how long they may take.
    pub(crate) fn of_handlers(options: &PostgresOptions, sessions: Sessions) -> Arc<Self> {
        Self::new(options, sessions, options.connections, "jit = off")
    }

    fn new(options: &PostgresOptions, sessions: Sessions, most: u32, settings: &str) -> Arc<Self> {
        let local = if sessions == Sessions::Shared { "SET LOCAL" } else { "SET" };
        let all = settings.split("; ").filter(|setting| !setting.is_empty());
        let setup = all.flat_map(|setting| [local, " ", setting, "; "]).collect();
        Arc::new(Self {
            options: options.connect_options(sessions),
            sessions,
            setup,
            pools: Pools::new(most as usize),
            most,
            timeout: options.call_timeout,
            era: AtomicU64::new(0),
        })
    }

    /// Whether statements keep their name on a connection.
    pub(crate) fn keeps_statements(&self) -> bool {
        self.sessions == Sessions::Own
    }

    /// A connection for a single statement that commits by itself; where sessions are shared, one in a transaction.
    pub(crate) async fn single(self: &Arc<Self>, operation: &'static str) -> Result<Lent, StoreError> {
        let mut lent = self.lend(operation).await?;
        if self.sessions == Sessions::Shared {
            lent.begin().await?;
        }
        Ok(lent)
    }

    /// A connection in a transaction.
    pub(crate) async fn begin(self: &Arc<Self>, operation: &'static str) -> Result<Lent, StoreError> {
        let mut lent = self.lend(operation).await?;
        lent.begin().await?;
        Ok(lent)
    }

    async fn lend(self: &Arc<Self>, operation: &'static str) -> Result<Lent, StoreError> {
        let pool = self.pools.current();
        let waiting = tokio::time::timeout(self.timeout, Arc::clone(&pool.permits).acquire_owned());
        let permit = waiting.await.map_err(|_| self.exhausted(operation))?;
        let permit = permit.map_err(|closed| StoreError::unexpected(operation, closed))?;
        let connection = match self.take_idle(&pool).await {
            Some(connection) => connection,
            None => self.connect(operation).await?,
        };
        let era = self.era.load(Ordering::Relaxed);
        let owner = Arc::clone(self);
        Ok(Lent {
            connection: Some(connection),
            era,
            owner,
            pool,
            operation,
            in_transaction: false,
            _permit: permit,
        })
    }

    /// An idle connection that works, as far as that can be known.
    async fn take_idle(&self, pool: &Pool) -> Option<PgConnection> {
        let mut idle = pool.take(self.era.load(Ordering::Relaxed))?;
        if idle.since.elapsed() < TRUSTED {
            return Some(idle.connection);
        }
        if let Ok(Ok(())) = tokio::time::timeout(self.timeout, idle.connection.ping()).await {
            return Some(idle.connection);
        }
        self.suspect_idle();
        None
    }

    /// What broke one connection has probably broken the idle ones too.
    fn suspect_idle(&self) {
        self.era.fetch_add(1, Ordering::Relaxed);
    }

    fn exhausted(&self, operation: &'static str) -> StoreError {
        let detail = format!(
            "all {} connections were in use for {:?}; raise `connections`, or look for transactions that stay open",
            self.most, self.timeout
        );
        StoreError::new(StoreErrorKind::Busy, operation, detail)
    }

    async fn connect(&self, operation: &'static str) -> Result<PgConnection, StoreError> {
        let connecting = tokio::time::timeout(self.timeout, self.options.connect());
        let mut connection = connecting.await.map_err(|_| no_answer(operation))?.during(operation)?;
        if self.sessions == Sessions::Own {
            let setup = sqlx::AssertSqlSafe(self.setup.as_str());
            connection.execute(sqlx::raw_sql(setup)).await.during(operation)?;
        }
        Ok(connection)
    }
}

/// The server took too long.
pub(crate) fn no_answer(operation: &'static str) -> StoreError {
    let detail = "the server did not answer in time; the call may have taken effect";
    StoreError::new(StoreErrorKind::Unavailable, operation, detail)
}

/// A connection that is in use. Dropped without [`Lent::finish`], it is closed.
#[derive(Debug)]
pub(crate) struct Lent {
    connection: Option<PgConnection>,
    era: u64,
    owner: Arc<Connections>,
    pool: Arc<Pool>,
    operation: &'static str,
    in_transaction: bool,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    async fn begin(&mut self) -> Result<(), StoreError> {
        let begin = match self.owner.sessions {
            Sessions::Own => "BEGIN".to_owned(),
            // In the message that begins the transaction, so that it costs no round trip.
            Sessions::Shared => format!("BEGIN; {}", self.owner.setup),
        };
        let operation = self.operation;
        // Not through the driver's transactions: this guard already does what theirs is for.
        (**self).execute(sqlx::raw_sql(sqlx::AssertSqlSafe(begin))).await.during(operation)?;
        self.in_transaction = true;
        Ok(())
    }

    /// The connection as statements take it.
    pub(crate) fn link(&mut self) -> SqlxLink<'_> {
        let persistent = self.owner.keeps_statements();
        SqlxLink { db: self, persistent }
    }

    /// Commits if there is a transaction, and gives the connection back.
    pub(crate) async fn finish(mut self) -> Result<(), StoreError> {
        if self.in_transaction {
            let operation = self.operation;
            (*self).execute(sqlx::raw_sql("COMMIT")).await.during(operation)?;
        }
        self.give_back();
        Ok(())
    }

    /// Rolls back and gives the connection back.
    pub(crate) async fn roll_back(mut self) -> Result<(), StoreError> {
        if self.in_transaction {
            let operation = self.operation;
            (*self).execute(sqlx::raw_sql("ROLLBACK")).await.during(operation)?;
        }
        self.give_back();
        Ok(())
    }

    fn give_back(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        self.pool.give_back(connection, self.era);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.connection.is_some() {
            self.owner.suspect_idle();
        }
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("it is taken only when the guard is gone")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("it is taken only when the guard is gone")
    }
}
