//! What PostgreSQL's error codes mean for a caller. Codes: appendix A of the PostgreSQL manual, "Error Codes".

use mailslot_core::{StoreError, StoreErrorKind};
use sqlx::error::DatabaseError;

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

fn store_error(operation: &'static str, error: sqlx::Error) -> StoreError {
    match of_sqlx(&error) {
        Some((kind, detail)) => StoreError::new(kind, operation, detail).because(error),
        None => StoreError::unexpected(operation, error),
    }
}

/// What an error of the driver means. `None`: it is none that is foreseen.
pub(crate) fn of_sqlx(error: &sqlx::Error) -> Option<(StoreErrorKind, &'static str)> {
    if let Some(code) = error.as_database_error().and_then(DatabaseError::code) {
        return Some(of_code(&code));
    }
    match error {
        sqlx::Error::Tls(_) => {
            Some((StoreErrorKind::Unavailable, "the server refused the encrypted connection"))
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
            Some((StoreErrorKind::Unavailable, "the connection to PostgreSQL broke or was refused"))
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
            Some((StoreErrorKind::Corrupt, "a stored value cannot be read; `doctor` finds it"))
        }
        _ => None,
    }
}

const NO_PARTITION: &str = "no partition takes the message; `mailslot doctor` says which is missing";

/// What an error code of the server means.
pub(crate) fn of_code(code: &str) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Busy, Corrupt, Invalid, NotWritable, Schema, Unavailable, Unexpected};
    match code {
        "40001" => (Busy, "PostgreSQL could not serialize the transaction; run it again"),
        "40P01" => {
            (Busy, "two transactions waited for each other and PostgreSQL ended this one; run it again")
        }
        "55P03" => (Busy, "another transaction holds a lock for too long; look for one that stays open"),
        "57014" => (Unavailable, "the statement took longer than the call timeout and was cancelled"),
        "53300" => (Unavailable, "PostgreSQL has no connection left; raise max_connections or use a pooler"),
        "53100" => (NotWritable, "the disk of the server is full; make room and go on"),
        "25006" => (
            NotWritable,
            "the server is read-only: a standby, or default_transaction_read_only; use the primary",
        ),
        "42501" => (NotWritable, "the role may not do this; see the grants in docs/postgres.md"),
        "25P01" => (Invalid, "the connection is in no transaction; begin one first"),
        "25P02" => (Invalid, "the transaction has failed already; roll it back and begin anew"),
        "3D000" => (Schema, "there is no such database; create it first"),
        "28P01" | "28000" => (Unavailable, "PostgreSQL refused the user or its password"),
        // Undefined table, schema, column, sequence.
        "42P01" | "3F000" | "42703" => {
            (Schema, "the inbox's tables are missing or of another version; run `mailslot migrate`")
        }
        "0A000" | "26000" => {
            (Unavailable, "the schema changed under a prepared statement; the connection is renewed")
        }
        "23514" => (Schema, NO_PARTITION),
        "22003" => (Invalid, "a number passes the bound of its column"),
        _ => match code.get(..2) {
            // Connection exceptions, operator intervention (shutdown, crash, terminated).
            Some("08" | "57") => {
                (Unavailable, "the connection to PostgreSQL broke, or the server is stopping")
            }
            Some("53") => (Unavailable, "PostgreSQL is out of a resource"),
            Some("58") => (Unavailable, "PostgreSQL met an error of its system"),
            Some("XX") => (Corrupt, "PostgreSQL reports damaged data; look into its log"),
            _ => (Unexpected, "something unforeseen happened in PostgreSQL"),
        },
    }
}

/// Whether a transaction that failed so may succeed when it is run again at once.
pub(crate) fn is_race(error: &StoreError) -> bool {
    code_of(error).is_some_and(|code| ["40001", "40P01", "23505"].contains(&code.as_str()))
}

/// Whether no partition takes a new message: nobody who may make them was there for too long.
pub(crate) fn is_missing_partition(error: &StoreError) -> bool {
    // By what it was read as, because each driver has errors of its own.
    error.detail() == NO_PARTITION
}

/// The server's error code behind an error.
pub(crate) fn code_of(error: &StoreError) -> Option<String> {
    let source = std::error::Error::source(error)?.downcast_ref::<sqlx::Error>()?;
    Some(source.as_database_error()?.code()?.into_owned())
}
