//! What SQLite's result codes mean for a caller. Codes: the manual page "Result and Error Codes" on sqlite.org,
//! `rescode.html`.

use mailslot_core::{StoreError, StoreErrorKind};

/// The lower byte of an extended code.
const PRIMARY: i32 = 0xff;

const SQLITE_ERROR: i32 = 1;
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_TOOBIG: i32 = 18;
const SQLITE_NOTADB: i32 = 26;
/// `SQLITE_BUSY | (2 << 8)`: another writer committed after this transaction read.
const SQLITE_BUSY_SNAPSHOT: i32 = 517;

/// Names the store method in which a driver call failed.
pub(crate) trait During<T> {
    fn during(self, operation: &'static str) -> Result<T, StoreError>;
}

impl<T> During<T> for Result<T, sqlx::Error> {
    fn during(self, operation: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| store_error(operation, error))
    }
}

impl<T> During<T> for Result<T, serde_json::Error> {
    fn during(self, operation: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| {
            StoreError::new(StoreErrorKind::Corrupt, operation, "a stored value is not the JSON it should be")
                .because(error)
        })
    }
}

/// The extended result code, if the error came from SQLite.
pub(crate) fn result_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn store_error(operation: &'static str, error: sqlx::Error) -> StoreError {
    let (kind, detail) = match result_code(&error) {
        Some(code) => of_code(code, &error),
        None => match &error {
            sqlx::Error::PoolTimedOut => (StoreErrorKind::Busy, BUSY),
            sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed => {
                (StoreErrorKind::Unavailable, "the connection to the file broke")
            }
            sqlx::Error::BeginFailed | sqlx::Error::InvalidSavePointStatement => {
                (StoreErrorKind::Invalid, "the connection is in a transaction already")
            }
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                (StoreErrorKind::Corrupt, "a stored value cannot be read; `doctor` finds it")
            }
            _ => return StoreError::unexpected(operation, error),
        },
    };
    StoreError::new(kind, operation, detail).because(error)
}

const BUSY: &str =
    "another writer holds the file for too long; look for an application that keeps a transaction open";

fn of_code(code: i32, error: &sqlx::Error) -> (StoreErrorKind, &'static str) {
    if code == SQLITE_BUSY_SNAPSHOT {
        let detail = "the transaction read before another writer committed; begin it with BEGIN IMMEDIATE";
        return (StoreErrorKind::Busy, detail);
    }
    match code & PRIMARY {
        SQLITE_BUSY | SQLITE_LOCKED => (StoreErrorKind::Busy, BUSY),
        SQLITE_READONLY => {
            (StoreErrorKind::NotWritable, "the file or its directory is read-only; make both writable")
        }
        SQLITE_FULL => (StoreErrorKind::NotWritable, "the disk is full; make room and go on"),
        SQLITE_IOERR => (StoreErrorKind::Unavailable, "the disk failed a read or a write"),
        SQLITE_CANTOPEN => (
            StoreErrorKind::Unavailable,
            "the file cannot be opened; check that its directory exists and may be written",
        ),
        SQLITE_CORRUPT => (
            StoreErrorKind::Corrupt,
            "the file is damaged; stop every program on it and recover it or restore a backup",
        ),
        SQLITE_NOTADB => (StoreErrorKind::Schema, "the file is not a SQLite database; check the path"),
        SQLITE_TOOBIG => (StoreErrorKind::Invalid, "a value passes SQLite's own bound of a billion bytes"),
        SQLITE_ERROR if is_missing_table(error) => (
            StoreErrorKind::Schema,
            "the inbox's tables are missing in this database; use the file that the store was opened with",
        ),
        _ => (StoreErrorKind::Unexpected, "something unforeseen happened in SQLite"),
    }
}

fn is_missing_table(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains("no such table: mailslot_"))
}
