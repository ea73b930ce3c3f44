//! Mailslot: an inbox for Rust services.
//!
//! A message lands so that it is handled, never lost, and never silently handled twice. This crate is what a program
//! adds; it gathers the vocabulary (`mailslot-core`), the engine, the derive macro, the stores and the brokers.
//!
#![doc = include_str!("../../../README.md")]
#![warn(missing_docs)]

mod open;

pub use mailslot_core::*;
pub use mailslot_engine::*;
pub use mailslot_macros::Message;
pub use open::{OpenError, open, open_existing, schema_sql};

/// The embedded store: one SQLite file.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    pub use mailslot_store_sqlite::*;
}

/// The store for real load: a PostgreSQL database.
#[cfg(feature = "postgres")]
pub mod postgres {
    pub use mailslot_store_postgres::*;
}

/// The broker RabbitMQ.
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq {
    pub use mailslot_broker_rabbitmq::*;
}
