//! SIGINT and SIGTERM: the first one asks to stop in order, the second one ends the process at once.

use super::group;
use crate::error::Error;
use crate::output;
use jiff::SignedDuration;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The request to stop. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Sender<bool>);

impl Stop {
    /// Asks to stop.
    pub(super) fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Waits until someone asks.
    pub(super) async fn asked(self) {
        // It cannot fail: this keeps a sender.
        let _ = self.0.subscribe().wait_for(|asked| *asked).await;
    }
}

/// Listens from now on.
pub(super) fn listen(grace: Duration) -> Result<Stop, Error> {
    let failed = |error| Error::unforeseen("failed to listen to signals", error);
    let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let stop = Stop(watch::Sender::new(false));
    tokio::spawn(obey(interrupt, terminate, stop.clone(), grace));
    Ok(stop)
}

async fn obey(mut interrupt: Signal, mut terminate: Signal, stop: Stop, grace: Duration) {
    next(&mut interrupt, &mut terminate).await;
    let grace = SignedDuration::try_from(grace).map_or_else(|_| "their time".into(), output::length);
    tracing::info!("stopping: running commands get {grace} to finish; a second signal ends them at once");
    stop.stop();
    let second = next(&mut interrupt, &mut terminate).await;
    group::kill_all();
    // As a shell reports a death by signal.
    std::process::exit(128 + second.as_raw_value());
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> SignalKind {
    tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt(),
        _ = terminate.recv() => SignalKind::terminate(),
    }
}
