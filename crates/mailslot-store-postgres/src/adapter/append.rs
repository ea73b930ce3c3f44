//! What is the same for every driver.

use crate::link::Link;
use crate::store::PostgresStore;
use mailslot_core::StoreError;
use mailslot_core::store::{AppendGroup, Appended};
use sqlx::SqlStr;

pub(super) const OPERATION: &str = "append_in";

/// Sets the savepoint of an accept. It fails outside of a transaction, where nothing could be taken back.
pub(super) const SET_SAVEPOINT: &str = "SAVEPOINT mailslot";

/// As [`PostgresStore::append_in`], over a driver's transaction.
pub(super) async fn append_in(
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
