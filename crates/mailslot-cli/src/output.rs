//! Standard output: aligned text for people, JSON for programs.

use crate::args::Global;
use crate::error::Error;
use crate::progress;
use jiff::{SignedDuration, SpanRound, Timestamp, Unit};
use mailslot::Status;
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};

/// Where and how a command prints its results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Whether programs read it.
    pub(crate) json: bool,
    colour: bool,
    quiet: bool,
}

impl Output {
    /// As the flags and the terminal say.
    pub(crate) fn new(global: &Global) -> Self {
        let colour = !global.json && std::io::stdout().is_terminal() && colour_is_wanted();
        Self { json: global.json, colour, quiet: global.quiet }
    }

    /// Prints one line of text.
    #[expect(clippy::unused_self, reason = "a command prints through its output alone")]
    pub(crate) fn line(self, text: impl AsRef<str>) -> Result<(), Error> {
        let mut line = text.as_ref().trim_end().to_owned();
        line.push('\n');
        write_bytes(line.as_bytes())
    }

    /// Prints a document on one line.
    #[expect(clippy::unused_self, reason = "a command prints through its output alone")]
    pub(crate) fn document(self, value: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(value)
            .map_err(|error| Error::unforeseen("failed to write the result as JSON", error))?;
        text.push(b'\n');
        write_bytes(&text)
    }

    /// Prints text for people, or the document for programs.
    pub(crate) fn result(self, text: impl AsRef<str>, value: &impl Serialize) -> Result<(), Error> {
        if self.json { self.document(value) } else { self.line(text) }
    }

    /// Prints a table; an empty one as `nothing`.
    pub(crate) fn table(self, table: &Table, nothing: &str) -> Result<(), Error> {
        if table.rows.is_empty() {
            return self.line(nothing);
        }
        write_bytes(table.text(self).as_bytes())
    }

    /// Says something beside the result, on standard error.
    pub(crate) fn note(self, text: impl AsRef<str>) {
        if !self.quiet {
            // Nothing depends on a note, so a closed standard error is no failure.
            let _ = progress::suspended(|| writeln!(std::io::stderr().lock(), "{}", text.as_ref()));
        }
    }

    fn paint(self, text: &str, colour: Option<Colour>) -> String {
        match colour.filter(|_| self.colour) {
            Some(colour) => format!("\x1b[{}m{text}\x1b[0m", colour as u8),
            None => text.to_owned(),
        }
    }

    /// A cell's text with its colour, for use outside tables.
    pub(crate) fn painted(self, cell: &Cell) -> String {
        self.paint(&cell.text, cell.colour)
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(text, Some(Colour::Bold))
    }
}

/// Prints bytes as they are.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Error> {
    progress::suspended(|| std::io::stdout().lock().write_all(bytes)).map_err(Error::of_output)
}

/// A status, coloured by what it asks of the reader.
pub(crate) fn status_cell(status: Status) -> Cell {
    let colour = match status {
        Status::DeadLettered => Some(Colour::Red),
        Status::Suspended | Status::Parked => Some(Colour::Yellow),
        Status::Completed => Some(Colour::Green),
        Status::Leased => Some(Colour::Cyan),
        Status::Pending | Status::Skipped | Status::Cancelled => None,
    };
    Cell { text: status.to_string(), colour, right: false }
}

/// Source: the convention at no-color.org.
fn colour_is_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// What an error's line begins with.
pub(crate) fn error_label() -> &'static str {
    if std::io::stderr().is_terminal() && colour_is_wanted() { "\x1b[31merror:\x1b[0m" } else { "error:" }
}

/// The codes of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Bold = 1,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

/// A field of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Colour>,
    right: bool,
}

impl Cell {
    /// Text in a colour.
    pub(crate) fn coloured(text: impl Into<String>, colour: Colour) -> Self {
        Self { text: text.into(), colour: Some(colour), right: false }
    }

    /// A number, set to the right.
    pub(crate) fn number(number: impl ToString) -> Self {
        Self { text: number.to_string(), colour: None, right: true }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.to_string(), colour: None, right: false }
    }
}

/// Rows under headings, aligned.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self::with(headings.into_iter().map(str::to_owned).collect())
    }

    /// An empty table whose columns are not known in advance.
    pub(crate) fn with(headings: Vec<String>) -> Self {
        let heading = |text| Cell { text, colour: Some(Colour::Bold), right: false };
        Self { headings: headings.into_iter().map(heading).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    fn text(&self, output: Output) -> String {
        let all = || std::iter::once(&self.headings).chain(&self.rows);
        let widest =
            |column: usize| all().filter_map(|row| row.get(column)).map(|cell| width(&cell.text)).max();
        let widths: Vec<_> = (0..self.headings.len()).map(|column| widest(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in all() {
            let mut line = String::new();
            for (column, (cell, &wide)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(wide - width(&cell.text));
                let right = cell.right || self.rows.first().is_some_and(|row| row[column].right);
                let shown = output.paint(&cell.text, cell.colour);
                line += &if right { pad + &shown } else { shown + &pad };
                line += "  ";
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// An instant to the second.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A length of time in its two largest units, such as `1h 30m`.
pub(crate) fn length(duration: SignedDuration) -> String {
    let micros = i64::try_from(duration.as_micros().unsigned_abs()).unwrap_or(i64::MAX);
    let smallest = if micros >= 1_000_000 { Unit::Second } else { Unit::Millisecond };
    let round = SpanRound::new().largest(Unit::Day).smallest(smallest).days_are_24_hours();
    jiff::Span::new()
        .try_microseconds(micros)
        .and_then(|span| span.round(round))
        .map_or_else(|_| format!("{micros} us"), |span| format!("{span:#}"))
}

/// How far an instant lies ahead of another, or back.
pub(crate) fn distance(at: Timestamp, now: Timestamp) -> String {
    let ahead = at.duration_since(now);
    if ahead.is_negative() { format!("{} ago", length(ahead)) } else { format!("in {}", length(ahead)) }
}

/// `1 message`, `2 messages`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_stand_to_the_right() {
        let output = Output { json: false, colour: false, quiet: false };
        let mut table = Table::new(["NAME", "COUNT"]);
        table.row(vec!["long name".into(), Cell::number(7)]);
        table.row(vec!["é".into(), Cell::number(123_456)]);
        assert_eq!(table.text(output), "NAME        COUNT\nlong name       7\né          123456\n");
    }

    #[test]
    fn lengths_are_short() {
        assert_eq!(length(SignedDuration::from_secs(5400)), "1h 30m");
        assert_eq!(length(SignedDuration::from_millis(-250)), "250ms");
        assert_eq!(counted(1, "message"), "1 message");
    }
}
