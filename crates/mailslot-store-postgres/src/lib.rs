//! The PostgreSQL store: a durable inbox for real load, for any number of processes, in a database that applications
//! may share.
//!
//! - A receipt is on disk by the server's own `synchronous_commit`.
//! - The clock of the server is the clock of the store.
//! - Many accepts of a process go in one statement and one commit; so do the settlements of a worker's turn and its
//!   next claim. Nothing takes a round trip for each message.
//! - Behind a pooler in transaction mode it leaves nothing in a session: see [`Pooler`].
//!
//! Where a message is, is its state: a pending one is a row of `ready`, a leased one is a member of a row of `lease`, and
//! so on; envelope and outcomes are only ever inserted. The migration explains each table.

mod accept;
pub mod adapter;
mod append;
mod change;
mod check;
mod claim;
mod config;
mod connection;
mod delivery;
mod error;
mod exchange;
mod hints;
mod insert;
mod keeper;
mod kept;
mod lanes;
mod leases;
mod ledger;
mod link;
mod link_sqlx;
mod migrate;
mod moves;
mod operator;
mod partition;
#[cfg(test)]
mod plan;
mod pool;
mod queries;
mod redrive;
mod retain;
mod retire;
mod select;
mod settle;
mod store;
mod tx;
mod view;
mod wakeup;

pub use config::{Pooler, PostgresOptions};
pub use mailslot_core::WakeMode;
pub use migrate::schema_sql;
pub use store::PostgresStore;
pub use tx::PostgresTx;
