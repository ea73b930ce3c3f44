//! The command line as a whole, and how its values are read.

use crate::command::Command;
use crate::exit::exit_codes_text;
use clap::Parser;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use mailslot::Retry;
use std::time::Duration;

/// A durable inbox: messages land here so that they are handled, never lost, and never silently handled twice.
#[derive(Debug, Parser)]
#[command(name = "mailslot", version, propagate_version = true, after_long_help = exit_codes_text())]
#[command(disable_help_subcommand = false, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The store: a path or `sqlite:PATH`, or `postgres://USER@HOST/DATABASE`
    // Hidden: the help must not show the password in a URL.
    #[arg(long, global = true, env = "MAILSLOT_STORE", hide_env_values = true)]
    #[arg(value_name = "URL", default_value = "mailslot.db")]
    pub(crate) store: String,
    /// Print JSON: one document, or one object a line where results stream
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log more and print the causes of an error; -vv logs still more. `RUST_LOG` overrides it
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Print results and errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// Reads `10m`, `1h 30m`, `7d` or ISO 8601 as a length of time; a day has 24 hours.
pub(crate) fn signed_duration(text: &str) -> Result<SignedDuration, String> {
    let fix = "write it as 500ms, 10s, 5m, 1h 30m or 7d";
    let span: Span = text.parse().map_err(|_| format!("no length of time: {fix}"))?;
    span.to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| format!("months and years have no fixed length: {fix}"))
}

/// Reads a length of time that is not negative.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = signed_duration(text)?;
    Duration::try_from(duration).map_err(|_| "it is negative: write it without the sign".into())
}

/// For how long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// This long.
    For(Duration),
    /// For ever.
    Always,
}

impl Keep {
    /// As the library puts it.
    pub(crate) fn limit(self) -> Option<Duration> {
        match self {
            Self::For(duration) => Some(duration),
            Self::Always => None,
        }
    }
}

/// Reads a length of time, or `never` (to delete) for ever.
pub(crate) fn keep(text: &str) -> Result<Keep, String> {
    match text {
        "never" | "forever" => Ok(Keep::Always),
        _ => duration(text).map(Keep::For).map_err(|error| format!("{error}; or never")),
    }
}

/// Reads an instant in RFC 3339.
pub(crate) fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "no instant: write it as 2026-01-31T12:00:00Z".into())
}

/// Reads `name=value`.
pub(crate) fn name_value(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "no header: write it as name=value".into())
}

/// Reads `exponential:5s..5m`, `linear:5s..5m`, `fixed:30s` or `never`.
pub(crate) fn retry(text: &str) -> Result<Retry, String> {
    let unknown =
        || "no retry policy: write it as exponential:5s..5m, linear:5s..5m, fixed:30s or never".to_owned();
    if text == "never" {
        return Ok(Retry::never());
    }
    let (kind, delays) = text.split_once(':').ok_or_else(unknown)?;
    let (first, last) = match delays.split_once("..") {
        Some((first, last)) => (duration(first)?, Some(duration(last)?)),
        None => (duration(delays)?, None),
    };
    let retry = match (kind, last) {
        ("exponential", _) => Retry::exponential(first),
        ("linear", _) => Retry::linear(first),
        ("fixed", None) => Retry::fixed(first),
        _ => return Err(unknown()),
    };
    Ok(match last {
        Some(last) => retry.max_delay(last),
        None => retry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_friendly_and_days_are_exact() {
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(7 * 86400)));
        assert_eq!(signed_duration("-10m"), Ok(SignedDuration::from_mins(-10)));
        assert!(duration("-10m").unwrap_err().contains("negative"));
        assert!(duration("1mo").unwrap_err().contains("no fixed length"));
        assert!(duration("10").unwrap_err().contains("write it as"));
        assert_eq!(keep("never"), Ok(Keep::Always));
    }

    #[test]
    fn retry_policies_are_read() {
        let five = Duration::from_secs(5);
        assert_eq!(retry("exponential:5s..5m"), Ok(Retry::exponential(five).max_delay(five * 60)));
        assert_eq!(retry("linear:5s"), Ok(Retry::linear(five)));
        assert_eq!(retry("fixed:5s"), Ok(Retry::fixed(five)));
        assert_eq!(retry("never"), Ok(Retry::never()));
        for bad in ["", "fixed", "fixed:5s..6s", "square:5s", "exponential:"] {
            assert!(retry(bad).is_err(), "{bad}");
        }
    }
}
