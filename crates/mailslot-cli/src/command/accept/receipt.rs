//! Printing receipts as they come.

use crate::error::Error;
use crate::output::{Cell, Colour, Output};
use mailslot::{AcceptOutcome, Receipt};
use serde::Serialize;

/// Prints receipts in columns, or as one object a line.
pub(super) struct Printer {
    output: Output,
    headed: bool,
}

#[derive(Serialize)]
struct ReceiptView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

#[derive(Serialize)]
struct RefusalView<'a> {
    line: u64,
    error: &'a str,
    exit_code: u8,
}

impl Printer {
    pub(super) fn new(output: Output) -> Self {
        Self { output, headed: output.json }
    }

    /// Prints a receipt, with the line that it answers.
    pub(super) fn print(&mut self, line: Option<u64>, receipt: &Receipt) -> Result<(), Error> {
        if self.output.json {
            return self.output.document(&ReceiptView { line, receipt });
        }
        if !std::mem::replace(&mut self.headed, true) {
            let heading = format!("{:<36}  {:<29}  {:<27}  CONTRACT", "ID", "OUTCOME", "ACCEPTED");
            self.output.line(self.output.bold(&heading))?;
        }
        let (outcome, colour) = match receipt.outcome {
            AcceptOutcome::Accepted => ("accepted".to_owned(), Colour::Green),
            AcceptOutcome::AlreadyAccepted { status } => {
                (format!("already accepted: {status}"), Colour::Cyan)
            }
        };
        let outcome = self.output.painted(&Cell::coloured(format!("{outcome:<29}"), colour));
        let Receipt { id, accepted_at, contract, .. } = receipt;
        self.output.line(format!("{id}  {outcome}  {:<27}  {contract}", accepted_at.to_string()))
    }

    /// Tells programs about a line that was refused; people read it on standard error.
    pub(super) fn refuse(&self, line: u64, error: &Error) -> Result<(), Error> {
        if self.output.json {
            let exit_code = error.exit().code();
            return self.output.document(&RefusalView { line, error: error.text(), exit_code });
        }
        self.output.note(format!("error: {}", error.text()));
        Ok(())
    }
}
