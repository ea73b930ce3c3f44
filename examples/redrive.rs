//! Redrive: a service was down, its messages are dead letters, and now it is up again. They are tried again at a rate
//! that does not bury it.
//!
//! `cargo run -p mailslot --example redrive`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mailslot::store::{Filter, RedriveSpec};
use mailslot::{HandlerError, Inbox, MaintenanceConfig, MemoryStore, Message, Reason, Retry, State, Status};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Say = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "tax.report", version = 1)]
struct ReportTax {
    invoice: u32,
}

/// The service that the handler calls.
#[derive(Clone, Default)]
struct TaxOffice {
    is_open: Arc<AtomicBool>,
}

async fn report(_: ReportTax, State(office): State<TaxOffice>) -> Result<(), HandlerError> {
    if office.is_open.load(Ordering::SeqCst) { Ok(()) } else { Err("the tax office is closed".into()) }
}

pub(crate) async fn run(say: Say) -> anyhow::Result<()> {
    let office = TaxOffice::default();
    let inbox = Inbox::builder(MemoryStore::new())
        .handler(report)
        .state(office.clone())
        .retry(Retry::fixed(Duration::from_millis(1)).max_attempts(2))
        // How often running redrives take a step.
        .maintenance(MaintenanceConfig { redrive_every: Duration::from_millis(20), ..Default::default() })
        .build()?;
    for invoice in 1..=20 {
        inbox.accept(&ReportTax { invoice }).await?;
    }
    let mut stats = inbox.watch();
    inbox.run(async { drop(stats.wait_for(|stats| stats.dead_lettered == 20).await) }).await?;
    say(format!("{} dead letters: each used up its attempts", dead_letters(&inbox).await?));

    // The cause is gone, so try them again: only those that ended for this reason, at most 500 a second.
    office.is_open.store(true, Ordering::SeqCst);
    let filter = Filter { reason: Some(Reason::AttemptsExhausted), ..Filter::default() };
    let redrive = inbox.operator().redrive(RedriveSpec { filter, rate: 500 }).await?;
    say(format!("redrive {} has {} messages", redrive.id, redrive.total));

    // Any worker advances it; it survives restarts, and can be paused and cancelled by its number.
    let mut stats = inbox.watch();
    inbox.run(async { drop(stats.wait_for(|stats| stats.completed == 20).await) }).await?;
    say(format!("handled {}, {} dead letters", inbox.stats().completed, dead_letters(&inbox).await?));
    Ok(())
}

async fn dead_letters(inbox: &Inbox<MemoryStore>) -> anyhow::Result<u64> {
    let counts = inbox.operator().counts().await?;
    Ok(counts.iter().filter(|count| count.status == Status::DeadLettered).map(|count| count.messages).sum())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Arc::new(|line| println!("{line}"))).await
}
