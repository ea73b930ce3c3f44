//! The SQLite store: a durable inbox in one file, for one machine, without a server.
//!
//! - Several processes may open the same file. SQLite lets one of them write at a time; readers never wait.
//! - A receipt is on disk: the log is written through before a commit returns ([`Synchronous::Full`]).
//! - The clock of the machine is the clock of the store.
//! - Accept in your own transaction with [`SqliteStore::append_in`]; let a handler's changes commit with its
//!   completion by taking a [`SqliteTx`].
//! - Keep the file on a local disk: the log needs shared memory, which network file systems do not give.
//!
//! Where a message is, is its state: a pending one is a row of `mailslot_ready`, a leased one of
//! `mailslot_lease_member`, and so on; the envelope itself is never updated. The migration explains each table.

mod append;
mod change;
mod check;
mod claim;
mod config;
mod connection;
mod delivery;
mod error;
mod insert;
mod kept;
mod ledger;
mod migrate;
mod moves;
mod operator;
mod queries;
mod redrive;
mod retain;
mod row;
mod select;
mod settle;
mod store;
mod tx;
mod view;
mod wakeup;

pub use config::{SqliteOptions, Synchronous};
pub use migrate::schema_sql;
pub use store::SqliteStore;
pub use tx::SqliteTx;
