//! What a process that does not get to its end says: what has not ended, who holds it, and what the server is doing.

use super::backend::{Backend, BoxError, CrashInbox};
use mailslot_core::Status;
use mailslot_core::store::{Filter, PageRequest};
use std::fmt::Write as _;
use std::time::Duration;

/// How long each look may take: what is stuck may hold up the one who looks, too.
const LOOK: Duration = Duration::from_secs(5);

/// How many messages are shown.
const SHOWN: usize = 10;

/// A report for a person; what cannot be found out is said in its place.
pub(crate) async fn report<B: Backend>(backend: &B, inbox: &CrashInbox<B>) -> String {
    let mut report = format!("\nstatistics: {:?}", inbox.stats());
    for (what, found) in [
        ("not ended", look(not_ended::<B>(inbox)).await),
        ("leases", look(leases::<B>(inbox)).await),
        ("the server", look(backend.activity()).await),
    ] {
        let _ = write!(report, "\n{what}:\n{found}");
    }
    report
}

async fn look(found: impl Future<Output = Result<String, BoxError>>) -> String {
    match tokio::time::timeout(LOOK, found).await {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => format!("cannot be found out: {error}"),
        Err(_) => format!("no answer in {LOOK:?}"),
    }
}

async fn not_ended<B: Backend>(inbox: &CrashInbox<B>) -> Result<String, BoxError> {
    let open = Status::ALL.iter().copied().filter(|status| !status.is_terminal());
    let filter = Filter { statuses: Some(open.collect()), ..Filter::default() };
    let request = PageRequest { size: SHOWN, ..PageRequest::default() };
    let mut text = format!("{:?}\n", inbox.operator().counts().await?);
    for record in inbox.operator().query(&filter, &request).await?.items {
        let _ = writeln!(text, "{record:?}");
    }
    Ok(text)
}

async fn leases<B: Backend>(inbox: &CrashInbox<B>) -> Result<String, BoxError> {
    Ok(format!("{:?}\n", inbox.operator().leases(SHOWN).await?))
}
