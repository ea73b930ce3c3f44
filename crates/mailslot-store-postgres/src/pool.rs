//! The connections of each runtime: a connection is driven by the runtime that opened it, so another one cannot use it
//! once that one is blocked or gone. Heartbeats rely on it: they have a runtime of their own.

use sqlx::postgres::PgConnection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Most runtimes that are kept apart. Programs have one, and a worker adds one for its heartbeats; those that ended are
/// forgotten first.
const RUNTIMES_MAX: usize = 8;

/// The pools, the one that was used last at the end.
#[derive(Debug)]
pub(crate) struct Pools {
    most: usize,
    pools: Mutex<Vec<(Id, Arc<Pool>)>>,
}

impl Pools {
    /// Pools of at most so many connections each.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, pools: Mutex::default() }
    }

    /// The pool of the runtime that this is called in.
    pub(crate) fn current(&self) -> Arc<Pool> {
        let id = Handle::current().id();
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = match pools.iter().position(|(known, _)| *known == id) {
            Some(place) => pools.remove(place).1,
            None => Arc::new(Pool { permits: Arc::new(Semaphore::new(self.most)), idle: Mutex::default() }),
        };
        pools.push((id, Arc::clone(&pool)));
        if pools.len() > RUNTIMES_MAX {
            pools.remove(0);
        }
        pool
    }
}

/// The connections of one runtime.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

/// A connection that nobody uses, since when, and in which era it was made.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(crate) connection: PgConnection,
    pub(crate) since: Instant,
    era: u64,
}

impl Pool {
    /// An idle connection of this era; older ones are closed.
    pub(crate) fn take(&self, era: u64) -> Option<Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.era == era);
        idle.pop()
    }

    pub(crate) fn give_back(&self, connection: PgConnection, era: u64) {
        let idle = Idle { connection, since: Instant::now(), era };
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
    }
}
