//! `cargo xtask test`: builds, tidies, and runs every example and test, with real servers. The runner's summary comes
//! last.

use crate::servers::{Programs, Servers};
use crate::step::{self, TESTS, cargo, has_cargo_command, in_ci, say};
use crate::{interrupt, tidy};
use anyhow::{Context, Result, bail};

/// Runs each stage, and the first that fails ends it; or only the tests that the arguments of the runner choose.
pub(crate) fn run(runner: &[String]) -> Result<()> {
    // First, because whoever has to install something wants to know it now.
    let programs = Programs::provide()?;
    if runner.is_empty() {
        tidy::run()?;
        step::run("build", &mut cargo(&["build", "--workspace", "--all-targets"])?)?;
        step::run("documentation examples", &mut cargo(&["test", "--workspace", "--doc"])?)?;
    }
    let interrupt = interrupt::survive()?;
    let mut servers = Servers::start(&programs)?;
    interrupt.check()?;
    let result = run_tests(&servers, runner);
    if result.is_err() {
        servers.keep_logs();
    }
    result
}

fn run_tests(servers: &Servers, runner: &[String]) -> Result<()> {
    match (has_cargo_command("nextest")?, runner) {
        (true, []) => with_nextest(servers),
        (false, []) => with_cargo(servers),
        (true, chosen) => run_chosen(servers, &["nextest", "run"], chosen),
        (false, chosen) => run_chosen(servers, &["test"], chosen),
    }
}

fn run_chosen(servers: &Servers, command: &[&str], chosen: &[String]) -> Result<()> {
    let mut arguments = command.to_vec();
    if !choose_packages(chosen) {
        arguments.push("--workspace");
    }
    arguments.extend(chosen.iter().map(String::as_str));
    step::run(TESTS, &mut servers.show_to(cargo(&arguments)?))
}

/// Whether the arguments say in which packages to look; if not, it is all of them.
fn choose_packages(chosen: &[String]) -> bool {
    let options = ["-p", "--package", "--workspace", "--all", "--manifest-path"];
    let chooses = |argument: &String| {
        options.contains(&argument.split('=').next().unwrap_or_default()) || argument.starts_with("-p")
    };
    chosen.iter().take_while(|argument| *argument != "--").any(chooses)
}

fn with_nextest(servers: &Servers) -> Result<()> {
    let list =
        ["nextest", "list", "--workspace", "--run-ignored", "ignored-only", "--message-format", "oneline"];
    refuse_ignored(&list, |line| !line.is_empty())?;
    let tests = cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])?;
    step::run(TESTS, &mut servers.show_to(tests))
}

/// For machines without cargo-nextest: slower, with one summary for each test program, so they are added up.
fn with_cargo(servers: &Servers) -> Result<()> {
    let list = ["test", "--quiet", "--workspace", "--all-targets", "--", "--ignored", "--list"];
    refuse_ignored(&list, |line| line.ends_with(": test"))?;
    let mut total = Tally::default();
    let tests = cargo(&["test", "--workspace", "--all-targets", "--no-fail-fast"])?;
    let result = step::run_watched(TESTS, &mut servers.show_to(tests), |line| total.add(line));
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
    fn arguments_that_name_no_package_are_for_all_of_them() {
        let choose = |text: &str| choose_packages(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(choose("-p mailslot-core a_name"));
        assert!(choose("a_name -pmailslot-core"));
        assert!(choose("--package=mailslot-core"));
        assert!(choose("--workspace"));
        assert!(!choose("a_name --no-fail-fast"));
        assert!(!choose("a_name -- -p"));
    }

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
