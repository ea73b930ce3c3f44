//! `cargo xtask servers`: the servers of the tests, for as long as somebody wants them.

use super::{Programs, Servers};
use crate::interrupt;
use crate::step::{note, say};
use anyhow::{Context, Result};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

/// Starts the servers. Runs the command with the variables set and gives its exit code; without a command it prints the
/// variables and stays until it is interrupted.
pub(crate) fn run(command: &[String]) -> Result<ExitCode> {
    let programs = Programs::provide()?;
    match command {
        [] => stay(&programs),
        [program, arguments @ ..] => run_with(&programs, Command::new(program).args(arguments)),
    }
}

fn stay(programs: &Programs) -> Result<ExitCode> {
    let wait = interrupt::listen()?;
    let servers = Servers::start(programs)?;
    for (name, value) in servers.variables() {
        say(&format!("export {name}={}", quoted(value)));
    }
    note("==> the servers run until Ctrl-C");
    wait.until_interrupted();
    note("==> stopping the servers");
    Ok(ExitCode::SUCCESS)
}

fn run_with(programs: &Programs, command: &mut Command) -> Result<ExitCode> {
    let interrupt = interrupt::survive()?;
    let servers = Servers::start(programs)?;
    interrupt.check()?;
    let name = command.get_program().to_string_lossy().into_owned();
    let command = command.envs(servers.variables().iter().map(|(name, value)| (name, value)));
    let status = command.status().with_context(|| format!("{name} does not start"))?;
    Ok(exit_code(status))
}

/// The command's own code; for one that a signal ended, the code that a shell gives.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// A word of a shell, whatever is in it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_the_command_is_passed_on() {
        assert_eq!(exit_code(ExitStatus::from_raw(0)), ExitCode::SUCCESS);
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), ExitCode::from(3));
        assert_eq!(exit_code(ExitStatus::from_raw(9)), ExitCode::from(137));
    }

    #[test]
    fn a_shell_reads_a_value_as_it_is() {
        assert_eq!(
            quoted("postgres://postgres@127.0.0.1:1/postgres"),
            "'postgres://postgres@127.0.0.1:1/postgres'"
        );
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
