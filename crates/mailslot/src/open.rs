//! From a URL to a store.

use mailslot_core::{FieldError, MemoryStore, StoreError};
use mailslot_engine::AnyStore;

/// Opens the store that `url` names: makes it if it is missing, and brings its schema up to date.
///
/// | URL | Store |
/// |---|---|
/// | `sqlite:path`, `sqlite://path`, or a path without a scheme | an SQLite file |
/// | `postgres://user:password@host:port/database`, also `postgresql://` | tables in a PostgreSQL database, in its schema `mailslot` or in that of `?mailslot_schema=name` |
/// | `memory:` | in memory: forgets everything with the process |
///
/// # Errors
/// An unknown scheme, or the store cannot be opened.
pub async fn open(url: &str) -> Result<AnyStore, OpenError> {
    open_as(url, Missing::Make).await
}

/// As [`open`], for those who only look or repair: makes no store that is missing, which is probably a mistyped URL, and
/// leaves a PostgreSQL schema at its version.
///
/// # Errors
/// As [`open`], and the store is missing.
pub async fn open_existing(url: &str) -> Result<AnyStore, OpenError> {
    open_as(url, Missing::Refuse).await
}

/// What to do about a store that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Refuse,
}

#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(unused_variables, reason = "a store in memory is never missing")
)]
async fn open_as(url: &str, missing: Missing) -> Result<AnyStore, OpenError> {
    match Kind::of(url)? {
        Kind::Memory => Ok(AnyStore::new(MemoryStore::new())),
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => {
            let options: mailslot_store_sqlite::SqliteOptions = url.parse()?;
            let options = options.create_if_missing(missing == Missing::Make);
            Ok(AnyStore::new(mailslot_store_sqlite::SqliteStore::open(options).await?))
        }
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let options: mailslot_store_postgres::PostgresOptions = url.parse()?;
            let options = options.migrate(missing == Missing::Make);
            Ok(AnyStore::new(mailslot_store_postgres::PostgresStore::open(options).await?))
        }
    }
}

/// The SQL that makes the schema of the store that `url` names, for people who apply it by hand. `None`: that kind has
/// no schema.
///
/// # Errors
/// An unknown scheme, or a URL that cannot be read.
pub fn schema_sql(url: &str) -> Result<Option<String>, OpenError> {
    match Kind::of(url)? {
        Kind::Memory => Ok(None),
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => Ok(Some(mailslot_store_sqlite::schema_sql())),
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let options: mailslot_store_postgres::PostgresOptions = url.parse()?;
            Ok(Some(options.schema_sql()))
        }
    }
}

/// The kinds of stores that this program was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

impl Kind {
    fn of(url: &str) -> Result<Self, FieldError> {
        match url.split_once(':') {
            Some(("memory", _)) => Ok(Self::Memory),
            #[cfg(feature = "postgres")]
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            #[cfg(feature = "sqlite")]
            Some(("sqlite", _)) => Ok(Self::Sqlite),
            Some((scheme, rest)) if rest.starts_with("//") => Err(unknown(scheme)),
            #[cfg(feature = "sqlite")]
            _ => Ok(Self::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            _ => Err(unknown("sqlite")),
        }
    }
}

fn unknown(scheme: &str) -> FieldError {
    let problem = format!("has the scheme `{scheme}`, which this program was built without");
    let fix = "use `sqlite:path/to/file.db`, `postgres://user@host/database` or `memory:`";
    FieldError::new("store", problem, fix)
}

/// A store cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no known store.
    Url(FieldError),
    /// The store refused.
    Store(StoreError),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url(_) => None,
            Self::Store(error) => error.source(),
        }
    }
}

impl From<FieldError> for OpenError {
    fn from(error: FieldError) -> Self {
        Self::Url(error)
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
