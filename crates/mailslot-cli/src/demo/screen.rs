//! What the demo shows: live on a terminal, plain lines elsewhere, nothing where JSON is asked for.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often progress is a line of its own where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Where the story is told.
#[derive(Debug)]
pub(super) struct Screen {
    quiet: bool,
    bold: bool,
    live: bool,
    bar: ProgressBar,
    told_at: Instant,
    told: u64,
}

impl Screen {
    pub(super) fn new(quiet: bool) -> Self {
        let live = !quiet && io::stdout().is_terminal() && io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            quiet,
            bold: live && !no_color,
            live,
            bar: ProgressBar::hidden(),
            told_at: Instant::now(),
            told: 0,
        }
    }

    /// Whether nothing is shown.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The title of a part.
    pub(super) fn title(&self, text: impl Display) {
        if self.bold { self.line(format!("\n\x1b[1m{text}\x1b[0m")) } else { self.line(format!("\n{text}")) }
    }

    /// A line of a part.
    pub(super) fn say(&self, text: impl Display) {
        self.line(format!("   {text}"));
    }

    /// A line as it is. A reader that went away is no failure of the demo.
    pub(super) fn line(&self, text: impl Display) {
        if !self.quiet {
            self.bar.suspend(|| {
                let _ = writeln!(io::stdout(), "{text}");
            });
        }
    }

    /// Begins to show progress towards `total`.
    pub(super) fn begin(&mut self, total: u64, unit: &'static str) {
        self.told_at = Instant::now();
        self.told = 0;
        let target = if self.live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("   {bar:40} {pos} of {len} {prefix} {msg}")
            .expect("the template is a literal");
        self.bar = ProgressBar::with_draw_target(Some(total), target).with_style(style).with_prefix(unit);
    }

    /// Shows how far it came. Without a terminal: by a line now and then.
    pub(super) fn progress(&mut self, done: u64, note: impl Into<String>) {
        self.bar.set_message(note.into());
        self.bar.set_position(done);
        if !self.live && done > self.told && self.told_at.elapsed() >= LINE_EVERY {
            self.told_at = Instant::now();
            self.told = done;
            let total = self.bar.length().unwrap_or_default();
            self.say(format!("{done} of {total} {}", self.bar.prefix()));
        }
    }

    /// Ends the progress and leaves the lines above it.
    pub(super) fn end(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }
}
