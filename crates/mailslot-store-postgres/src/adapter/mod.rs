//! Accepts in the transactions of other drivers than sqlx, each behind a feature of its own name.
//!
//! With a feature on, [`PostgresStore`] is an [`AppendIn`](mailslot_core::AppendIn) for that driver's transaction, so an
//! inbox on it has `accept_in(&mut transaction, &message)`. What [`PostgresStore::append_in`] says holds for all of them:
//! the message is there if and when the caller commits, a known one is answered as always and the transaction goes on,
//! and workers notice the commit by themselves.
//!
//! [`PostgresStore`]: crate::PostgresStore
//! [`PostgresStore::append_in`]: crate::PostgresStore::append_in
//!
//! | Feature | What `accept_in` takes |
//! |---|---|
//! | none | `sqlx::PgConnection` |
//! | `tokio-postgres` | `tokio_postgres::Transaction`, or a `Client` on which `BEGIN` was said by hand |
//! | `sea-orm` | `sea_orm::DatabaseTransaction`, or a reference to one |
//! | `diesel-async` | `diesel_async::AsyncPgConnection` within its `transaction` |
//!
//! sqlx takes one statement for all messages; the others take about one a table, so they need some more round trips.

#[cfg(any(feature = "tokio-postgres", feature = "sea-orm", feature = "diesel-async"))]
mod append;
#[cfg(any(feature = "tokio-postgres", feature = "diesel-async"))]
mod cell;
#[cfg(feature = "diesel-async")]
mod diesel_async;
#[cfg(feature = "sea-orm")]
mod sea_orm;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;
