//! `mailslot`: the inbox from a shell. Every command is a file in `command`; what they share stands beside this one.

mod args;
mod command;
mod demo;
mod error;
mod exit;
mod filter;
mod output;
mod progress;
mod store;
mod view;

use args::Cli;
use clap::Parser as _;
use error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    progress::start_logging(&cli.global);
    let global = cli.global.clone();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.report(&global);
            error.exit().into()
        }
    }
}

fn run(cli: Cli) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unforeseen("failed to start the runtime", error))?;
    let result = runtime.block_on(command::run(cli.command, &cli.global));
    // A thread that still waits for standard input must not hold up the end.
    runtime.shutdown_background();
    result
}
