//! Ctrl-C: whoever has servers to stop must live through it.

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From now on Ctrl-C does not end this process. It still ends the command that runs meanwhile, and that is enough.
pub(crate) fn survive() -> Result<Interrupt> {
    let seen = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&seen)).context("Ctrl-C cannot be caught")?;
    Ok(Interrupt { seen })
}

/// Whether somebody pressed Ctrl-C.
pub(crate) struct Interrupt {
    seen: Arc<AtomicBool>,
}

impl Interrupt {
    /// Ends what comes next if somebody pressed Ctrl-C while no command ran that could see it.
    pub(crate) fn check(&self) -> Result<()> {
        if self.seen.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }
}

/// From now on Ctrl-C and every request to end are kept for the wait.
pub(crate) fn listen() -> Result<Wait> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("Ctrl-C cannot be caught")?;
    Ok(Wait { signals })
}

/// Signals that came or will come.
pub(crate) struct Wait {
    signals: Signals,
}

impl Wait {
    /// Returns when somebody wants this process to end.
    pub(crate) fn until_interrupted(mut self) {
        let _ = self.signals.forever().next();
    }
}
