//! `mailslot exit-codes`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::{EXIT_CODES, exit_codes_text};
use crate::output::Output;
use serde::Serialize;

#[derive(Serialize)]
struct CodeView {
    code: u8,
    name: &'static str,
    meaning: &'static str,
}

/// Prints the table.
pub(crate) fn run(global: &Global) -> Result<(), Error> {
    let codes: Vec<_> =
        EXIT_CODES.iter().map(|&(code, name, meaning)| CodeView { code, name, meaning }).collect();
    Output::new(global).result(exit_codes_text(), &codes)
}
