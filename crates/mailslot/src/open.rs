//! From a URL to a store.

use mailslot_core::{FieldError, MemoryStore, StoreError};
use mailslot_engine::AnyStore;

/// Opens the store that `url` names, and brings its schema up to date.
///
/// | URL | Store |
/// |---|---|
/// | `sqlite:path`, `sqlite://path`, or a path without a scheme | an SQLite file, made if it is missing |
/// | `memory:` | in memory: forgets everything with the process |
///
/// # Errors
/// An unknown scheme, or the store cannot be opened.
pub async fn open(url: &str) -> Result<AnyStore, OpenError> {
    match url.split_once(':') {
        Some(("memory", _)) => Ok(AnyStore::new(MemoryStore::new())),
        #[cfg(feature = "sqlite")]
        Some(("sqlite", _)) => Ok(AnyStore::new(mailslot_store_sqlite::SqliteStore::connect(url).await?)),
        Some((scheme, rest)) if rest.starts_with("//") => Err(unknown(scheme).into()),
        #[cfg(feature = "sqlite")]
        _ => Ok(AnyStore::new(mailslot_store_sqlite::SqliteStore::connect(url).await?)),
        #[cfg(not(feature = "sqlite"))]
        _ => Err(unknown("sqlite").into()),
    }
}

/// The SQL that makes the schema of the kind of store that `url` names, for people who apply it by hand. `None`: that
/// kind has no schema.
///
/// # Errors
/// An unknown scheme.
pub fn schema_sql(url: &str) -> Result<Option<String>, OpenError> {
    match url.split_once(':') {
        Some(("memory", _)) => Ok(None),
        Some((scheme, rest)) if rest.starts_with("//") && scheme != "sqlite" => Err(unknown(scheme).into()),
        #[cfg(feature = "sqlite")]
        _ => Ok(Some(mailslot_store_sqlite::schema_sql())),
        #[cfg(not(feature = "sqlite"))]
        _ => Err(unknown("sqlite").into()),
    }
}

fn unknown(scheme: &str) -> FieldError {
    let problem = format!("has the scheme `{scheme}`, which this program was built without");
    FieldError::new("store", problem, "use `sqlite:path/to/file.db` or `memory:`")
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
