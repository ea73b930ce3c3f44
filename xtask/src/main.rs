//! The commands of this repository: `cargo xtask test`, `check`, `fix` and `tidy`.
//!
//! `check` and `tidy` only read; `fix` writes. Everything else a developer needs is plain cargo.

mod check;
mod fix;
mod step;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "The checks and the test command of this repository")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build, tidy, documentation examples and every test
    Test,
    /// Format, clippy, documentation, tidy and cargo-deny, all without writing
    Check,
    /// Format the sources and write the generated documents
    Fix,
    /// The rules of this repository that no compiler knows
    Tidy,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test => test::run(),
        Command::Check => check::run(),
        Command::Fix => fix::run(),
        Command::Tidy => tidy::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            step::say(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
