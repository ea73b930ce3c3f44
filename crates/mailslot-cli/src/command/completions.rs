//! `mailslot completions`.

use crate::args::{Cli, Global};
use crate::error::Error;
use crate::output::Output;
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Source it, or put it where the shell looks for completions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: Args, global: &Global) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mailslot", &mut script);
    Output::new(global).bytes(&script)
}
