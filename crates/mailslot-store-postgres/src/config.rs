//! How a database is opened.

use crate::connection::Sessions;
use crate::queries::WRITTEN_SCHEMA;
use mailslot_core::{Clock, FieldError};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Connections for accepts, claims and settlements: two or three accepts in flight and a worker's turn keep a server
/// busy; more than a few claiming connections make it slower.
const CONNECTIONS: u32 = 6;

/// For how long a call waits for the server before it gives up and closes its connection.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest name of a schema: what PostgreSQL keeps of an identifier.
const SCHEMA_BYTES_MAX: usize = 63;

/// How often a store with listeners sends a notification at the most.
const NOTIFY_EVERY: Duration = Duration::from_millis(10);

/// Whether there is a pooler between this process and the server that hands sessions out by transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooler {
    /// Find out when the store is opened.
    #[default]
    Probe,
    /// None, or one that gives each connection a session of its own.
    None,
    /// One in transaction mode, such as pgbouncer: nothing is left in a session, every statement runs in a
    /// transaction and without a name, and other processes are noticed by polling.
    Transaction,
}

/// How to open a store. [`PostgresOptions::new`] has the defaults; the URL's own parameters (`sslmode` and so on) hold.
#[derive(Clone)]
pub struct PostgresOptions {
    pub(crate) connect: PgConnectOptions,
    pub(crate) schema: String,
    pub(crate) connections: u32,
    pub(crate) call_timeout: Duration,
    pub(crate) migrate: bool,
    pub(crate) pooler: Pooler,
    pub(crate) listen: bool,
    pub(crate) notify_every: Duration,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl PostgresOptions {
    /// The defaults for the database that the driver's options name: schema `mailslot`, migrated on connect, six
    /// connections and a few for operators, pooler and wake-ups found out.
    pub fn new(connect: PgConnectOptions) -> Self {
        Self {
            connect,
            schema: WRITTEN_SCHEMA.to_owned(),
            connections: CONNECTIONS,
            call_timeout: CALL_TIMEOUT,
            migrate: true,
            pooler: Pooler::default(),
            listen: true,
            notify_every: NOTIFY_EVERY,
            clock: None,
        }
    }

    /// The schema of the tables. Two schemas in one database are two inboxes.
    ///
    /// # Errors
    /// Anything but 1 to 63 lower-case letters, digits and underscores, not beginning with a digit.
    pub fn schema(mut self, schema: impl Into<String>) -> Result<Self, FieldError> {
        self.schema = schema.into();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins_well = !self.schema.starts_with(|c: char| c.is_ascii_digit());
        let fits = (1..=SCHEMA_BYTES_MAX).contains(&self.schema.len());
        if fits && begins_well && self.schema.chars().all(plain) && !self.schema.starts_with("pg_") {
            return Ok(self);
        }
        let fix = "use 1 to 63 lower-case letters, digits and underscores, beginning with a letter";
        Err(FieldError::new("schema", "is no plain name", fix))
    }

    /// Most connections for accepts, claims and settlements, at least 1. Operators and maintenance have two more,
    /// wake-ups one, and each handler that runs in its transaction one from here.
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// For how long a call waits for the server before it gives up and closes its connection.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Whether an older schema, or none, is migrated on connect. Otherwise it is an error.
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Whether there is a pooler in between.
    pub fn pooler(mut self, pooler: Pooler) -> Self {
        self.pooler = pooler;
        self
    }

    /// Whether to listen for the accepts of other processes, and to notify them. Without it they are found by polling.
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// How often other processes are notified at the most. A notification takes a lock of the whole server until it is
    /// committed, so it is sent apart from the accepts, and one for many of them.
    pub fn notify_every(mut self, interval: Duration) -> Self {
        self.notify_every = interval;
        self
    }

    /// Another clock than the server's: for tests that move it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    pub(crate) fn connect_options(&self, sessions: Sessions) -> PgConnectOptions {
        let statements = match sessions {
            Sessions::Own => crate::queries::ALL.len(),
            Sessions::Shared => 0,
        };
        self.connect.clone().disable_statement_logging().statement_cache_capacity(statements)
    }
}

impl fmt::Debug for PostgresOptions {
    /// Names the database and never its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("host", &self.connect.get_host())
            .field("port", &self.connect.get_port())
            .field("database", &self.connect.get_database())
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("call_timeout", &self.call_timeout)
            .field("migrate", &self.migrate)
            .field("pooler", &self.pooler)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

impl FromStr for PostgresOptions {
    type Err = FieldError;

    /// Reads `postgres://user:password@host:port/database`, with libpq's parameters; `mailslot_schema=name` among them
    /// names the schema.
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let (url, schema) = split_schema(text);
        let connect = PgConnectOptions::from_str(&url).map_err(|_| {
            // The driver's own error may repeat the URL, and with it the password.
            let fix = "write it as postgres://user:password@host:5432/database";
            FieldError::new("url", "is no PostgreSQL URL", fix)
        })?;
        match schema {
            Some(schema) => Self::new(connect).schema(schema),
            None => Ok(Self::new(connect)),
        }
    }
}

/// Takes our own parameter out of the URL: the driver would pass it on to the server, which does not know it.
fn split_schema(text: &str) -> (String, Option<String>) {
    let Some((base, query)) = text.split_once('?') else { return (text.to_owned(), None) };
    let ours = |pair: &&str| pair.starts_with("mailslot_schema=");
    let schema = query.split('&').find(ours).map(|pair| pair["mailslot_schema=".len()..].to_owned());
    let rest: Vec<_> = query.split('&').filter(|pair| !ours(pair)).collect();
    let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    (url, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_read_from_the_url_and_taken_out_of_it() {
        let options: PostgresOptions =
            "postgres://u:secret@db.example:6432/app?sslmode=disable&mailslot_schema=inbox_2"
                .parse()
                .unwrap();
        assert_eq!((options.schema.as_str(), options.connect.get_database()), ("inbox_2", Some("app")));
        let shown = format!("{options:?}");
        assert!(shown.contains("db.example") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn bad_input_is_refused_by_name_and_without_the_password() {
        for bad in [
            "postgres://u:secret@h:port/app",
            "postgres://h/app?mailslot_schema=Up",
            "postgres://h/a?mailslot_schema=",
        ] {
            let error = bad.parse::<PostgresOptions>().unwrap_err().to_string();
            assert!(
                (error.contains("url") || error.contains("schema")) && !error.contains("secret"),
                "{error}"
            );
        }
        for bad in ["", "1a", "a-b", "a;b", "pg_x", &"a".repeat(64)] {
            let options = PostgresOptions::new(PgConnectOptions::new_without_pgpass());
            assert!(options.schema(bad).is_err(), "{bad}");
        }
    }
}
