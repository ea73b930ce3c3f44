//! The examples of `docs/cli.md`: each runs, in order, in one folder, and prints what the manual says.

use crate::shop::{Shop, clean, ran};
use std::path::Path;
use std::process::Command;

/// A command of the manual and what it prints.
struct Example {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// Reads the blocks that are marked as `console`: commands begin with `$`, and go on after a backslash.
fn examples(manual: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for (number, line) in manual.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        let goes_on =
            examples.last().is_some_and(|last| last.command.ends_with('\\') && last.output.is_empty());
        match line.strip_prefix("$ ") {
            _ if !inside => {}
            Some(command) => {
                examples.push(Example { line: number + 1, command: command.into(), output: Vec::new() });
            }
            None if goes_on => examples.last_mut().unwrap().command.extend(["\n", line]),
            None => examples.last_mut().unwrap().output.push(line.into()),
        }
    }
    examples
}

/// Compares line by line; `…` stands for anything in a line, and alone for any lines to the end.
fn fits(expected: &[String], found: &str) -> bool {
    let mut found = found.lines();
    for line in expected {
        if line == "…" {
            return true;
        }
        if !found.next().is_some_and(|found| line_fits(line, found)) {
            return false;
        }
    }
    found.next().is_none()
}

fn line_fits(expected: &str, found: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = found.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut open = false;
    for part in parts {
        open = part.is_empty();
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    open || rest.is_empty()
}

#[test]
fn every_example_of_the_manual_does_what_it_says() {
    let shop = Shop::new();
    let program = Path::new(env!("CARGO_BIN_EXE_mailslot"));
    let path = std::env::join_paths(
        [program.parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let examples = examples(include_str!("../../../../docs/cli.md"));
    assert!(examples.len() > 20);
    for Example { line, command, output } in examples {
        let mut shell = Command::new("sh");
        clean(&mut shell, &shop.path(""));
        shell.env("PATH", path.as_ref().unwrap()).arg("-c").arg(format!("{{ {command}\n}} 2>&1"));
        let found = ran(shell, b"").out;
        assert!(fits(&output, &found), "docs/cli.md:{line}: {command}\nexpected {output:#?}\nfound\n{found}");
    }
}

#[test]
fn the_grants_in_the_manual_are_those_that_are_tested() {
    let manual = include_str!("../../../../docs/postgres.md");
    for grants in [
        include_str!("../../../mailslot-store-postgres/grants/accept.sql"),
        include_str!("../../../mailslot-store-postgres/grants/work.sql"),
    ] {
        assert!(manual.contains(grants.trim_end()), "docs/postgres.md lacks:\n{grants}");
    }
}

#[test]
fn every_command_is_in_the_manual() {
    let manual = include_str!("../../../../docs/cli.md");
    let help = Shop::new().ok(&["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in
        commands.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help")
    {
        assert!(
            manual.contains(&format!("mailslot {command}")),
            "docs/cli.md does not mention `mailslot {command}`"
        );
    }
}
