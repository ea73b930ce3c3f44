//! Real servers for tests.
//!
//! Most tests share the servers that `cargo xtask test` starts before it runs them, each in a schema of its own:
//!
//! ```no_run
//! use mailslot_testkit::servers;
//!
//! let url = servers::shared(); // or `newest`, or `pgbouncer`
//! let schema = servers::fresh_schema();
//! ```
//!
//! A test that stops or kills its server starts its own:
//!
//! ```no_run
//! use mailslot_testkit::servers::{PostgresConfig, PostgresServer};
//!
//! let mut server = PostgresServer::start(PostgresConfig { fsync: true, ..PostgresConfig::default() })?;
//! server.kill()?;
//! server.restart()?;
//! # Ok::<(), mailslot_testkit::servers::ServerError>(())
//! ```

pub use mailslot_servers::environment::{
    Scratch, fresh_schema, newest, pgbouncer, postgres_bin, rabbitmq, shared,
};
pub use mailslot_servers::{
    Pgbouncer, PgbouncerConfig, PostgresConfig, PostgresRelease, PostgresServer, RabbitMq, ServerError,
};
