//! What moves on standard error: logs, and progress where someone watches.

use crate::args::Global;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write};
use std::sync::LazyLock;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// All bars, so that lines can be printed between them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Prints something while no bar is in the way.
pub(crate) fn suspended<T>(print: impl FnOnce() -> T) -> T {
    BARS.suspend(print)
}

/// A bar on a terminal; otherwise one that is never seen.
pub(crate) fn bar(global: &Global, total: Option<u64>, unit: &str) -> ProgressBar {
    if global.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
    }
    let template = match total {
        Some(_) => format!("{{bar:30}} {{pos}}/{{len}} {unit}, {{per_sec}}, {{eta}} left {{msg}}"),
        None => format!("{{spinner}} {{pos}} {unit}, {{per_sec}} {{msg}}"),
    };
    add(total, &template)
}

/// A line of text that is kept up to date on a terminal; otherwise `None`.
pub(crate) fn status_line(global: &Global) -> Option<ProgressBar> {
    (!global.quiet && std::io::stderr().is_terminal()).then(|| add(None, "{spinner} {msg}"))
}

fn add(total: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style);
    let bar = BARS.add(bar);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Logs to standard error. This program's own notices are shown by default, of everything else only warnings.
pub(crate) fn start_logging(global: &Global) {
    let default = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn,mailslot=info",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(coloured)
        .with_writer(|| LogWriter)
        .with_target(false)
        .init();
}

/// Writes log lines between bars. It never fails: a worker whose log nobody reads any more has to go on.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = suspended(|| std::io::stderr().write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
