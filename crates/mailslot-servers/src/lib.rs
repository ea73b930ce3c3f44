//! Real servers for tests: PostgreSQL, pgbouncer in front of it, and RabbitMQ.
//!
//! - [`environment`]: the servers that a whole run of tests shares, found by environment variables.
//! - [`PostgresServer`]: a server of one test's own, which it may kill, stop, pause and start again.
//! - [`Pgbouncer`]: a pooler in transaction mode, as people put in front of PostgreSQL.
//! - [`RabbitMq`]: a broker of one test's own, which it may kill and start again.
//!
//! Every server listens on 127.0.0.1 only, keeps all that it writes in a fresh temporary directory, and goes with its
//! value, or with the process that started it, even if that was killed. Whoever may log in on this machine may use it
//! while it runs: it asks for no password, or for the one that everybody knows.
//!
//! All calls block. Linux only: what belongs to a server is found in `/proc`.

mod account;
mod directory;
pub mod environment;
mod error;
mod guard;
mod launch;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod program;
mod rabbitmq;
mod readiness;
mod shared_memory;

pub use account::Account;
pub use directory::Directory;
pub use error::ServerError;
pub use pgbouncer::{Pgbouncer, PgbouncerConfig};
pub use postgres::{PostgresConfig, PostgresRelease, PostgresServer};
pub use program::find_program;
pub use rabbitmq::RabbitMq;
