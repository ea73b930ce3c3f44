//! What a test's store and loops say.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;

/// A second listener, which hears nothing. While there is only one, `tracing` asks the thread that comes first to a
/// place in the code whether anybody wants to hear of it, and a thread without a listener, such as that of the
/// heartbeats, says no for all.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

/// The log of everything that runs on the thread of a test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Begins to listen, until the guard is dropped.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        LazyLock::force(&ANOTHER);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many lines have all of these words.
    pub(crate) fn count(&self, words: &[&str]) -> usize {
        self.text().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    /// Whether the loops said once that the store is away and once that it is back, and nothing else above INFO.
    #[track_caller]
    pub(crate) fn assert_told_of_one_outage(&self) {
        let away = self.count(&["WARN", "the store is away", "waits=\"claims and verdicts\""]);
        let back = self.count(&["INFO", "the store is back", "waits=\"claims and verdicts\""]);
        assert_eq!((away, back), (1, 1), "{}", self.text());
        let others = |line: &&str| {
            let is_loud = line.contains(" WARN ") || line.contains(" ERROR ");
            is_loud && !line.contains("the store is away")
        };
        let text = self.text();
        assert_eq!(text.lines().find(others), None);
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The test's own handle is the last one; whoever reads of its failure needs to know what was said.
        if std::thread::panicking() && Arc::strong_count(&self.0) == 1 {
            let _ = writeln!(std::io::stderr(), "{}", self.text());
        }
    }
}
