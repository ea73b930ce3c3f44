//! What a store does beside its calls, every few seconds: it makes the next partition ahead, closes the open one when its
//! day is over, and adds up the counters.
//!
//! A role that may only accept or only work cannot do all of it, and need not: any process with the rights does.

use crate::partition;
use crate::queries;
use crate::store::Shared;
use crate::view;
use mailslot_core::{StoreError, StoreErrorKind};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it looks. The narrowest partition lasts minutes at the highest rate that a server was seen to take.
const EVERY: Duration = Duration::from_secs(2);

const OPERATION: &str = "keep";

/// Starts the keeper. It ends with the last handle of the store.
pub(crate) fn start(shared: &Arc<Shared>) {
    tokio::spawn(run(Arc::downgrade(shared), shared.wakeup.closing.clone()));
}

async fn run(shared: Weak<Shared>, closing: CancellationToken) {
    while closing.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(shared) = shared.upgrade() else { return };
        for (what, kept) in [
            ("partitions are made ahead", keep_partitions(&shared).await),
            ("counters are added up", keep_counters(&shared).await),
        ] {
            report(what, kept);
        }
    }
}

fn report(what: &'static str, kept: Result<(), StoreError>) {
    match kept {
        Ok(()) => {}
        // Another process does it.
        Err(error) if error.kind() == StoreErrorKind::NotWritable => {
            tracing::debug!(%error, what, "not done by this process");
        }
        Err(error) if error.is_transient() => tracing::debug!(%error, what, "tried again soon"),
        Err(error) => tracing::warn!(%error, what, "failed; tried again soon"),
    }
}

/// Makes the partition that is missing, and closes the one whose day is over.
pub(crate) async fn keep_partitions(shared: &Shared) -> Result<(), StoreError> {
    let mut lent = shared.aside.single(OPERATION).await?;
    let (missing, next) = {
        let mut link = lent.link();
        let mut session = shared.session(&mut link, OPERATION);
        (partition::missing(&mut session).await?, partition::to_close(&mut session).await?)
    };
    lent.finish().await?;
    if missing.is_some() {
        provide(shared).await?;
    }
    if let Some(next) = next {
        close(shared, next).await?;
    }
    Ok(())
}

/// Makes every partition that is missing, for an accept that met the want of one.
pub(crate) async fn provide_all(shared: &Shared) -> Result<(), StoreError> {
    tracing::warn!("no partition takes the next message; making it now");
    while provide(shared).await? {}
    Ok(())
}

/// Makes the partition that is missing, if no other process was faster.
async fn provide(shared: &Shared) -> Result<bool, StoreError> {
    let mut lent = shared.aside.begin(OPERATION).await?;
    let made = partition::provide(&mut lent, &shared.options.schema, &shared.statements, OPERATION).await?;
    lent.finish().await?;
    if made {
        tracing::info!("made the next partition of messages and outcomes");
    }
    Ok(made)
}

async fn close(shared: &Shared, next: i64) -> Result<(), StoreError> {
    let mut lent = shared.aside.begin(OPERATION).await?;
    {
        let mut link = lent.link();
        let mut session = shared.session(&mut link, OPERATION);
        session.row(queries::SCHEMA_LOCK, vec![]).await?;
        // Another process may have closed it while this one waited.
        if partition::to_close(&mut session).await? == Some(next) {
            partition::close(&mut session, next).await?;
        }
    }
    lent.finish().await
}

/// Adds the counters up, as long as there is much to add.
async fn keep_counters(shared: &Shared) -> Result<(), StoreError> {
    loop {
        let mut lent = shared.aside.single(OPERATION).await?;
        let folded = {
            let mut link = lent.link();
            view::fold(&mut shared.session(&mut link, OPERATION)).await?
        };
        lent.finish().await?;
        if folded < view::FOLDED_MAX {
            return Ok(());
        }
    }
}
