//! The servers that a whole run of tests shares, and where the programs of PostgreSQL are.
//!
//! `cargo xtask test` and `cargo xtask servers` start the servers and set the variables. A test that needs one and does
//! not find it fails: one that passes over what it cannot do proves nothing.

use crate::postgres::PostgresRelease;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The URL of a server of the oldest release, as a superuser.
pub const POSTGRES: &str = "MAILSLOT_TEST_POSTGRES";

/// The URL of a server of the newest release, as a superuser.
pub const POSTGRES_NEWEST: &str = "MAILSLOT_TEST_POSTGRES_NEWEST";

/// The URL of a pgbouncer in transaction mode, in front of the server of the oldest release.
pub const PGBOUNCER: &str = "MAILSLOT_TEST_PGBOUNCER";

/// The URL of a RabbitMQ, as a user who may do everything.
pub const RABBITMQ: &str = "MAILSLOT_TEST_RABBITMQ";

/// The directory of the oldest release's programs.
pub const POSTGRES_BIN: &str = "MAILSLOT_TEST_POSTGRES_BIN";

/// The directory of the newest release's programs.
pub const POSTGRES_NEWEST_BIN: &str = "MAILSLOT_TEST_POSTGRES_NEWEST_BIN";

/// The URL of the shared server of the oldest release, as a superuser.
///
/// # Panics
/// It was not started.
#[track_caller]
pub fn shared() -> String {
    required(POSTGRES)
}

/// The URL of the shared server of the newest release, as a superuser.
///
/// # Panics
/// It was not started.
#[track_caller]
pub fn newest() -> String {
    required(POSTGRES_NEWEST)
}

/// The URL of the shared pgbouncer, in transaction mode, in front of [`shared`].
///
/// # Panics
/// It was not started.
#[track_caller]
pub fn pgbouncer() -> String {
    required(PGBOUNCER)
}

/// The URL of the shared RabbitMQ.
///
/// # Panics
/// It was not started.
#[track_caller]
pub fn rabbitmq() -> String {
    required(RABBITMQ)
}

/// The directory of a release's programs, such as `pg_dump`.
///
/// # Panics
/// Nobody said where it is.
#[track_caller]
pub fn postgres_bin(release: PostgresRelease) -> PathBuf {
    let variable = match release {
        PostgresRelease::Oldest => POSTGRES_BIN,
        PostgresRelease::Newest => POSTGRES_NEWEST_BIN,
    };
    required(variable).into()
}

/// The name of a schema that nobody else has: not this process, and no other one on the same server.
pub fn fresh_schema() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
    format!("test_{process:016x}_{}", CALLS.fetch_add(1, Ordering::Relaxed))
}

/// A schema that is dropped with this, so that the catalogues of a shared server stay small: each of its programs looks
/// through them when it starts.
#[derive(Debug)]
pub struct Scratch {
    url: String,
    schema: String,
}

impl Scratch {
    /// Drops `schema` on the server at `url` in the end. Keep it for longer than what uses the schema.
    pub fn new(url: impl Into<String>, schema: impl Into<String>) -> Self {
        Self { url: url.into(), schema: schema.into() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let psql = postgres_bin(PostgresRelease::Oldest).join("psql");
        // Whoever still holds a lock keeps the schema; the server goes with everything in the end.
        let drop = format!("SET lock_timeout = '2s'; DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        let mut command = std::process::Command::new(psql);
        command.args(["--no-psqlrc", "--quiet", "--dbname", &self.url, "--command", &drop]);
        let _ = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
    }
}

#[track_caller]
fn required(variable: &str) -> String {
    match std::env::var(variable) {
        Ok(value) if !value.is_empty() => value,
        _ => panic!("{}", advice(variable)),
    }
}

fn advice(variable: &str) -> String {
    format!(
        "this test needs a server, and {variable} is not set: run it by `cargo xtask test`, or start the servers with \
         `cargo xtask servers` and set what it prints"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_schemas_are_the_same_and_all_are_plain_names() {
        let names: HashSet<_> = std::iter::repeat_with(fresh_schema).take(1000).collect();
        assert_eq!(names.len(), 1000);
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(names.iter().all(|name| name.len() < 64 && name.bytes().all(is_plain)));
    }

    #[test]
    #[should_panic(expected = "MAILSLOT_TEST_OF_NOTHING is not set: run it by `cargo xtask test`")]
    fn what_is_missing_is_a_failure_that_says_what_to_do() {
        required("MAILSLOT_TEST_OF_NOTHING");
    }
}
