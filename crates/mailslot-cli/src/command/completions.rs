//! `mailslot completions`.

use crate::args::Cli;
use crate::error::Error;
use crate::output::write_bytes;
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Source it, or put it where the shell looks for completions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: Args) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mailslot", &mut script);
    write_bytes(&script)
}
