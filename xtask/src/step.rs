//! Runs other programs, one step at a time, and says what it does.

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Prints one line.
#[expect(clippy::print_stdout, reason = "this is a command line tool, and this is its one place that prints")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Prints one line about the work itself, where it does not mix with what the command is asked for.
#[expect(clippy::print_stderr, reason = "this is a command line tool, and this is its one place that prints")]
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// The folder of the workspace.
pub(crate) fn workspace() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("start it as `cargo xtask …`")?;
    let folder = PathBuf::from(manifest).parent().context("the xtask folder has no parent")?.to_owned();
    Ok(folder)
}

/// Where the servers' programs and logs are kept: in cargo's target folder, so that `cargo clean` removes them.
pub(crate) fn server_folder() -> Result<PathBuf> {
    let mut question = MetadataCommand::new();
    let answer = question.current_dir(workspace()?).no_deps().exec();
    let target = answer.context("cargo cannot describe the workspace")?.target_directory;
    Ok(target.join("servers").into())
}

/// Whether this is the continuous integration, where nothing may be missing.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// A call of cargo in the workspace's folder.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(workspace()?);
    Ok(command)
}

/// Whether cargo knows the command, such as `nextest`.
pub(crate) fn has_cargo_command(name: &str) -> Result<bool> {
    let output = cargo(&[name, "--version"])?.output().context("cargo does not start")?;
    Ok(output.status.success())
}

/// Runs one step whose output goes straight to the terminal.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    let begun = announce(name, command);
    let status = command.status().with_context(|| format!("{name} does not start"))?;
    finish(name, begun, status.success())
}

/// Runs one step, passes each line of its standard output on as it comes, and shows it to `look` too.
pub(crate) fn run_watched(name: &str, command: &mut Command, mut look: impl FnMut(&str)) -> Result<()> {
    let begun = announce(name, command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("{name} does not start"))?;
    let output = child.stdout.take().context("the output is piped")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.with_context(|| format!("the output of {name} cannot be read"))?;
        let line = String::from_utf8_lossy(&line);
        say(&line);
        look(&line);
    }
    let status = child.wait().with_context(|| format!("{name} cannot be waited for"))?;
    finish(name, begun, status.success())
}

/// Does one step of what comes before the commands, and says how long it took.
pub(crate) fn prepare<T>(name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let result = step().with_context(|| format!("failed to {name}"))?;
    note(&format!("==> {name}: ok, {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(result)
}

/// Runs a command whose output matters only if it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{name} does not start"))?;
    if output.status.success() {
        return Ok(());
    }
    note(&String::from_utf8_lossy(&output.stdout));
    note(&String::from_utf8_lossy(&output.stderr));
    bail!("{name} failed: see above");
}

fn announce(name: &str, command: &Command) -> Instant {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    say(&format!("==> {name}: cargo {}", arguments.join(" ")));
    Instant::now()
}

fn finish(name: &str, begun: Instant, success: bool) -> Result<()> {
    if !success {
        bail!("{name} found something: see above");
    }
    // The runner's own summary of the tests has to stay the last word.
    if name != TESTS {
        say(&format!("==> {name}: ok, {:.1} s", begun.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// The name of the step that runs the tests.
pub(crate) const TESTS: &str = "tests";
