//! `cargo xtask test`: builds, tidies, and runs every example and test. The runner's summary comes last.

use crate::step::{self, TESTS, cargo, has_cargo_command, in_ci, say};
use crate::tidy;
use anyhow::{Context, Result, bail};

/// Runs each stage; the first that fails ends it.
pub(crate) fn run() -> Result<()> {
    tidy::run()?;
    step::run("build", &mut cargo(&["build", "--workspace", "--all-targets"])?)?;
    step::run("documentation examples", &mut cargo(&["test", "--workspace", "--doc"])?)?;
    if has_cargo_command("nextest")? { with_nextest() } else { with_cargo() }
}

fn with_nextest() -> Result<()> {
    let list =
        ["nextest", "list", "--workspace", "--run-ignored", "ignored-only", "--message-format", "oneline"];
    refuse_ignored(&list, |line| !line.is_empty())?;
    step::run(TESTS, &mut cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])?)
}

/// For machines without cargo-nextest: slower, with one summary for each test program, so they are added up.
fn with_cargo() -> Result<()> {
    let list = ["test", "--quiet", "--workspace", "--all-targets", "--", "--ignored", "--list"];
    refuse_ignored(&list, |line| line.ends_with(": test"))?;
    let mut total = Tally::default();
    let arguments = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
    let result = step::run_watched(TESTS, &mut cargo(&arguments)?, |line| total.add(line));
    let Tally { passed, failed, ignored } = total;
    say(&format!("{passed} passed, {failed} failed, {ignored} skipped"));
    result
}

/// Refuses tests that are marked as ignored, in the continuous integration.
///
/// A test that does not run because a server is missing proves nothing, and there nothing may be missing. A case that
/// a store's capabilities exclude is another thing: it runs, and says so itself.
fn refuse_ignored(list: &[&str], names_test: impl Fn(&str) -> bool) -> Result<()> {
    if !in_ci() {
        return Ok(());
    }
    let output = cargo(list)?.output().context("the test runner does not start")?;
    if !output.status.success() {
        bail!("the tests cannot be listed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let ignored: Vec<_> = lines.lines().map(str::trim).filter(|line| names_test(line)).collect();
    if !ignored.is_empty() {
        bail!(
            "in CI no test may be ignored: provide what these miss, or delete them:\n{}",
            ignored.join("\n")
        );
    }
    Ok(())
}

/// The sum of the summaries of many test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a line such as `test result: ok. 2 passed; 0 failed; 1 ignored; …`; passes over every other line.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            match count.split_once(' ').map(|(number, what)| (number.parse::<u64>(), what)) {
                Some((Ok(number), "passed")) => self.passed += number,
                Some((Ok(number), "failed")) => self.failed += number,
                Some((Ok(number), "ignored")) => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_many_programs_are_added_up() {
        let mut total = Tally::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 5 passed; 3 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s",
            "",
        ] {
            total.add(line);
        }
        assert_eq!(total, Tally { passed: 7, failed: 3, ignored: 1 });
    }
}
