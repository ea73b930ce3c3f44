//! The worker process: it handles messages until its parent closes its input.

use super::effects::Effects;
use super::folder::Folder;
use super::handlers::{self, Handlers};
use super::input;
use super::notice::Notice;
use mailslot::{Inbox, MaintenanceConfig, Stats, WorkerConfig};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

/// How long a killed worker's messages wait. Short, so that nobody waits for the demo; 30 s by default.
pub(super) const LEASE: Duration = Duration::from_secs(2);

/// Works until the parent ends or tells it to stop.
pub(super) async fn run(folder: &Folder, handlers: Handlers) -> anyhow::Result<()> {
    let store = mailslot::open(&folder.store()).await?;
    let inbox = handlers::register(Inbox::builder(store), input::contracts()?, handlers)
        .state(Effects::open(&folder.effects())?)
        .worker(WorkerConfig {
            lease: LEASE,
            heartbeat: Duration::from_millis(500),
            poll: Duration::from_millis(100),
            grace: Duration::from_secs(1),
            ..WorkerConfig::default()
        })
        .maintenance(MaintenanceConfig {
            recover_every: Duration::from_millis(100),
            redrive_every: Duration::from_millis(100),
            ..MaintenanceConfig::default()
        })
        .build()?;
    tokio::spawn(ignore_interrupts());
    tokio::spawn(report(inbox.watch()));
    Ok(inbox.run(parent_ends()).await?)
}

/// The parent closes our input when it wants an end; if it dies, the system does.
async fn parent_ends() {
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 64];
    while input.read(&mut ignored).await.is_ok_and(|bytes| bytes > 0) {}
}

/// A terminal interrupts every process at once; the parent decides what that means.
async fn ignore_interrupts() {
    while tokio::signal::ctrl_c().await.is_ok() {}
}

async fn report(mut stats: watch::Receiver<Stats>) {
    let mut told = 0;
    while let Ok(recovered) =
        stats.wait_for(|stats| stats.recovered > told).await.map(|stats| stats.recovered)
    {
        Notice::TookBack { messages: recovered - told }.send();
        told = recovered;
    }
}
