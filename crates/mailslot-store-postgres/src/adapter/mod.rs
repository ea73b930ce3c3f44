//! Accepts in the transactions of other drivers than sqlx, each behind a feature of its own name.
//!
//! With a feature on, [`PostgresStore`] is an [`AppendIn`](mailslot_core::AppendIn) for that driver's transaction, so an
//! inbox on it has `accept_in(&mut transaction, &message)`. What [`PostgresStore::append_in`] says holds for all of them:
//! the message is there if and when the caller commits, a known one is answered as always and the transaction goes on,
//! and workers notice the commit by themselves.
//!
//! | Feature | What `accept_in` takes |
//! |---|---|
//! | none | `sqlx::PgConnection` |
//! | `tokio-postgres` | `tokio_postgres::Transaction`, or a `Client` on which `BEGIN` was said by hand |
//! | `sea-orm` | `sea_orm::DatabaseTransaction`, or a reference to one |
//! | `diesel-async` | `diesel_async::AsyncPgConnection` within its `transaction` |
//!
//! sqlx takes one statement for all messages; the others take about one a table, so they need some more round trips.

#[cfg(feature = "diesel-async")]
mod diesel_async;
#[cfg(feature = "sea-orm")]
mod sea_orm;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;

use crate::link::Link;
use crate::store::PostgresStore;
use mailslot_core::StoreError;
use mailslot_core::store::{AppendGroup, Appended};
use sqlx::SqlStr;

const OPERATION: &str = "append_in";

/// Sets the savepoint of an accept. It fails outside of a transaction, where nothing could be taken back.
const SET_SAVEPOINT: &str = "SAVEPOINT mailslot";

/// As [`PostgresStore::append_in`], over a driver's transaction.
async fn append_in(
    store: &PostgresStore,
    link: &mut dyn Link,
    groups: Vec<AppendGroup>,
) -> Result<Vec<Vec<Appended>>, StoreError> {
    AppendGroup::check_all(&groups)?;
    store.lanes_of(OPERATION, &groups).await?;
    run(link, SET_SAVEPOINT).await?;
    let appended = store.append_over(link, &groups).await?;
    run(link, "RELEASE SAVEPOINT mailslot").await?;
    store.shared.wakeup.expect();
    Ok(appended)
}

async fn run(link: &mut dyn Link, statement: &'static str) -> Result<(), StoreError> {
    link.execute(OPERATION, &SqlStr::from_static(statement), vec![]).await.map(|_| ())
}

#[cfg(any(feature = "tokio-postgres", feature = "diesel-async"))]
mod cell {
    use crate::link::Cell;
    use crate::link_sqlx::i64_of;

    /// Numbers of built-in types, from `pg_type.dat` of PostgreSQL: they never change.
    mod oid {
        pub(super) const BOOL: u32 = 16;
        pub(super) const BYTEA: u32 = 17;
        pub(super) const NAME: u32 = 19;
        pub(super) const INT8: u32 = 20;
        pub(super) const INT2: u32 = 21;
        pub(super) const INT4: u32 = 23;
        pub(super) const TEXT: u32 = 25;
        pub(super) const VARCHAR: u32 = 1043;
        pub(super) const UUID: u32 = 2950;
    }

    /// A value that is not NULL, in the binary form of the protocol. `None`: no statement of ours gives that type.
    pub(super) fn cell(type_oid: u32, bytes: &[u8]) -> Option<Cell> {
        match type_oid {
            oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 => i64_of(bytes).map(Cell::Int),
            oid::BYTEA | oid::NAME | oid::TEXT | oid::VARCHAR | oid::UUID => {
                Some(Cell::Bytes(bytes.to_vec()))
            }
            _ => None,
        }
    }
}
