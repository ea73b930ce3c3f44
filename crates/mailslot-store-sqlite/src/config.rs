//! How a file is opened.

use mailslot_core::{Clock, FieldError, SystemClock};
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// For how long a call waits for another writer, in this process or another one. It covers any transaction of ours
/// many times over, so that passing it points at an application that holds a transaction open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections for reading. Reads are for operators and empty claims; more would only compete for the cores.
pub(crate) const READERS_MAX: u32 = 4;

/// Pages in the log before a commit copies them into the file, 16 MiB: copying pays off when a page was written
/// several times, and a longer log slows readers down.
const CHECKPOINT_PAGES: &str = "4096";

/// Bytes of page cache for the writer (negative: KiB): the indexes that every accept and claim touches stay in it.
const CACHE_KIB: &str = "-65536";

/// Rows that the driver's thread may be ahead of the reader: a whole claim, so that they change places once.
const ROW_BUFFER: usize = mailslot_core::limits::LEASE_BATCH_MAX;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The log is on disk before a commit returns: a receipt survives a power failure.
    #[default]
    Full,
    /// A commit survives the death of the process, but a power failure may take back the last ones.
    Normal,
}

/// How to open a store. [`SqliteOptions::new`] has the defaults that a receipt's promise needs.
#[derive(Clone)]
pub struct SqliteOptions {
    pub(crate) path: PathBuf,
    pub(crate) synchronous: Synchronous,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) busy_timeout: Duration,
    pub(crate) create_if_missing: bool,
    pub(crate) migrate: bool,
    pub(crate) share_with_application: bool,
}

impl SqliteOptions {
    /// Opens the file at `path`: created if missing, migrated, `synchronous=FULL`, five seconds for other writers.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            synchronous: Synchronous::default(),
            clock: Arc::new(SystemClock),
            busy_timeout: BUSY_TIMEOUT,
            create_if_missing: true,
            migrate: true,
            share_with_application: false,
        }
    }

    /// What a commit waits for.
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// The clock that decides about leases and due times. Every process on the file must agree with it; the default
    /// is the machine's, which they share.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// For how long a call waits for another writer before it fails as busy.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Whether a missing file is created. Otherwise it is an error.
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// Whether an older schema, or none, is migrated on connect. Otherwise it is an error.
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Puts the inbox into a file that holds an application's tables already, to share transactions with them.
    /// Without it such a file is refused: it is more often a mistyped path. A file that was an inbox first may take
    /// in other tables without it.
    pub fn share_with_application(mut self, share: bool) -> Self {
        self.share_with_application = share;
        self
    }

    pub(crate) fn connect_options(&self) -> SqliteConnectOptions {
        let synchronous = match self.synchronous {
            Synchronous::Full => SqliteSynchronous::Full,
            Synchronous::Normal => SqliteSynchronous::Normal,
        };
        sqlx::ConnectOptions::disable_statement_logging(SqliteConnectOptions::new())
            .filename(&self.path)
            .create_if_missing(self.create_if_missing)
            .busy_timeout(self.busy_timeout)
            .synchronous(synchronous)
            .row_buffer_size(ROW_BUFFER)
            .statement_cache_capacity(crate::queries::COUNT)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .pragma("cache_size", CACHE_KIB)
            .pragma("temp_store", "memory")
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("path", &self.path)
            .field("synchronous", &self.synchronous)
            .field("busy_timeout", &self.busy_timeout)
            .field("create_if_missing", &self.create_if_missing)
            .field("migrate", &self.migrate)
            .field("share_with_application", &self.share_with_application)
            .finish_non_exhaustive()
    }
}

impl FromStr for SqliteOptions {
    type Err = FieldError;

    /// Reads `sqlite://path`, `sqlite:path` or a plain path.
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
        let problem = match path {
            "" => "names no file",
            ":memory:" => "names no file but memory, which connections cannot share",
            _ if path.contains('?') => "has parameters",
            _ => return Ok(Self::new(path)),
        };
        Err(FieldError::new(
            "url",
            problem,
            "write it as sqlite:///path/to/inbox.db, and set options in code",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: Option<&str>) {
        let found = text.parse::<SqliteOptions>().ok().map(|options| options.path);
        assert_eq!(found.as_deref(), path.map(Path::new), "{text}");
    }

    #[test]
    fn urls_and_plain_paths_name_a_file() {
        check("sqlite:///var/lib/inbox.db", Some("/var/lib/inbox.db"));
        check("sqlite://inbox.db", Some("inbox.db"));
        check("sqlite:inbox.db", Some("inbox.db"));
        check("data/in box.db", Some("data/in box.db"));
        for bad in ["", "sqlite:", "sqlite://", "sqlite::memory:", "sqlite://a.db?mode=ro"] {
            check(bad, None);
        }
    }
}
