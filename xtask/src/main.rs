//! The commands of this repository: `cargo xtask test`, `servers`, `check`, `fix` and `tidy`.
//!
//! `check` and `tidy` only read; `fix` writes; `test` and `servers` start real servers. Everything else a developer needs is plain cargo.

mod check;
mod fix;
mod interrupt;
mod servers;
mod step;
mod test;
mod tidy;

use anyhow::Result;
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
    /// Build, tidy, documentation examples and every test, with real servers
    Test {
        /// Run only these tests and nothing else: arguments of the test runner, such as `-p mailslot-core a_name`
        #[arg(last = true)]
        runner: Vec<String>,
    },
    /// Start the servers that the tests need, and print the variables that name them; until Ctrl-C
    Servers {
        /// Run this with the variables set instead, then stop the servers
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Format, clippy, documentation, tidy and cargo-deny, all without writing
    Check,
    /// Format the sources and write the generated documents
    Fix,
    /// The rules of this repository that no compiler knows
    Tidy,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test { runner } => succeed(test::run(&runner)),
        Command::Servers { command } => servers::run(&command),
        Command::Check => succeed(check::run()),
        Command::Fix => succeed(fix::run()),
        Command::Tidy => succeed(tidy::run()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            step::say(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn succeed(result: Result<()>) -> Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
