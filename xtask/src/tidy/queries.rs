//! One query per file, each used in one place: what is not used is deleted, what is used twice has one constant.

use super::finding::Finding;
use super::tree::Tree;
use std::collections::BTreeMap;

/// One `include_str!` in a source file.
struct Inclusion<'a> {
    file: &'a str,
    line: usize,
    /// The path from the workspace's folder; `None` if the argument is not a plain literal.
    target: Option<String>,
}

/// Finds queries that are included never or twice, and inclusions of what is not there.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.ending(".rs").filter(|(path, _)| path.starts_with("crates/"));
    let inclusions: Vec<_> = sources.flat_map(|(path, text)| inclusions(tree, path, text)).collect();
    let mut findings = check_targets(tree, &inclusions);
    let mut uses: BTreeMap<&str, Vec<&Inclusion<'_>>> = BTreeMap::new();
    // Tests may read a query again, to prepare it against a real server.
    for inclusion in inclusions.iter().filter(|inclusion| inclusion.file.contains("/src/")) {
        if let Some(target) = &inclusion.target {
            uses.entry(target).or_default().push(inclusion);
        }
    }
    for (path, _) in tree.ending(".sql").filter(|(path, _)| path.contains("/queries/")) {
        match uses.get(path).map_or(&[][..], Vec::as_slice) {
            [] => {
                findings.push(Finding::new(path, 1, "no source includes this query", "use it or delete it"));
            }
            [_] => {}
            [first, again, ..] => {
                let problem = format!("`{path}` is included at {}:{} already", first.file, first.line);
                findings.push(Finding::new(again.file, again.line, problem, "share one constant"));
            }
        }
    }
    findings
}

fn check_targets(tree: &Tree, inclusions: &[Inclusion<'_>]) -> Vec<Finding> {
    let find = |inclusion: &Inclusion<'_>| {
        let (problem, fix) = match &inclusion.target {
            None => ("the path of this inclusion is put together".to_owned(), "write a plain string literal"),
            Some(target) if tree.get(target).is_none() => {
                (format!("`{target}` is not there"), "add the file or correct the path")
            }
            Some(_) => return None,
        };
        Some(Finding::new(inclusion.file, inclusion.line, problem, fix))
    };
    inclusions.iter().filter_map(find).collect()
}

/// Finds each `include_str!("…")`, and each entry of a list behind `include_str!(concat!("folder/", $file, ".end"))`.
fn inclusions<'a>(tree: &Tree, file: &'a str, text: &'a str) -> Vec<Inclusion<'a>> {
    let calls = text.match_indices("include_str!(").filter(|&(at, _)| !is_comment(text, at));
    let read_call = |(at, call): (usize, &str)| {
        let argument = text[at + call.len()..].trim_start();
        if let Some((folder, end)) = argument.strip_prefix("concat!(").and_then(around_variable) {
            let entries = list_entries(tree, file, text, folder, end);
            if !entries.is_empty() {
                return entries;
            }
        }
        let target = literal(argument).map(|path| resolve(file, path));
        vec![Inclusion { file, line: line_of(text, at), target }]
    };
    calls.flat_map(read_call).collect()
}

/// The literals of a file that name a file of the folder. One that names none is the compiler's business.
fn list_entries<'a>(tree: &Tree, file: &'a str, text: &str, folder: &str, end: &str) -> Vec<Inclusion<'a>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let literals =
        lines.flat_map(|(index, line)| line.split('"').skip(1).step_by(2).map(move |name| (index + 1, name)));
    let entry = |(line, name): (usize, &str)| {
        let target = resolve(file, &format!("{folder}{name}{end}"));
        tree.get(&target).is_some().then_some(Inclusion { file, line, target: Some(target) })
    };
    literals.filter_map(entry).collect()
}

/// What stands before and after the variable in `"folder/", $file, ".end"`.
fn around_variable(arguments: &str) -> Option<(&str, &str)> {
    let folder = literal(arguments)?;
    let variable = arguments[folder.len() + 2..].trim_start().strip_prefix(',')?.trim_start();
    let rest = variable.strip_prefix('$')?.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let end = rest.trim_start().strip_prefix(',').and_then(|rest| literal(rest.trim_start()));
    Some((folder, end.unwrap_or_default()))
}

/// The string literal at the start of an argument.
fn literal(argument: &str) -> Option<&str> {
    argument.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(text, _)| text)
}

fn is_comment(text: &str, at: usize) -> bool {
    text[..at].rsplit('\n').next().unwrap_or_default().trim_start().starts_with("//")
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// A path as it stands in `file`, seen from the workspace's folder.
fn resolve(file: &str, path: &str) -> String {
    let mut parts: Vec<_> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[track_caller]
    fn check_source(source: &str, expected: &[&str]) {
        let tree = Tree::from([
            ("crates/s/README.md", "# s\n"),
            ("crates/s/src/queries/message/append.sql", "INSERT"),
            ("crates/s/src/queries.rs", source),
            ("crates/s/tests/prepare.rs", r#"include_str!("../src/queries/message/append.sql")"#),
        ]);
        assert_eq!(lines(&check(&tree)), expected);
    }

    #[test]
    fn a_query_that_is_used_once_is_fine() {
        check_source("const A: &str = include_str!(\"queries/message/append.sql\");\n", &[]);
        check_source("const A: &str = include_str!(\n    \"./queries/message/append.sql\"\n);\n", &[]);
        check_source(
            "#![doc = include_str!(\"../README.md\")]\ninclude_str!(\"queries/message/append.sql\");\n",
            &[],
        );
    }

    #[test]
    fn a_query_that_nobody_uses_is_found() {
        let found =
            "crates/s/src/queries/message/append.sql:1: no source includes this query; use it or delete it";
        check_source("", &[found]);
        check_source("// include_str!(\"queries/message/append.sql\")\n", &[found]);
    }

    #[test]
    fn a_query_that_is_used_twice_is_found() {
        let once = "include_str!(\"queries/message/append.sql\");\n";
        check_source(
            &once.repeat(2),
            &[
                "crates/s/src/queries.rs:2: `crates/s/src/queries/message/append.sql` is included at crates/s/src/queries.rs:1 already; share one constant",
            ],
        );
    }

    #[test]
    fn a_list_of_queries_is_read_entry_by_entry() {
        let entry = "APPEND => \"message/append.sql\",\n";
        let list = "include_str!(concat!(\"queries/\", $file));\n";
        check_source(&format!("{list}{entry}"), &[]);
        check_source(
            &format!("{list}{entry}{entry}"),
            &[
                "crates/s/src/queries.rs:3: `crates/s/src/queries/message/append.sql` is included at crates/s/src/queries.rs:2 already; share one constant",
            ],
        );
        let list = "include_str!(concat!(\"queries/\", $noun, \"/append.sql\"));\n";
        check_source(&format!("{list}MESSAGE => \"message\","), &[]);
    }

    #[test]
    fn an_inclusion_that_leads_nowhere_is_found() {
        check_source(
            "include_str!(\"queries/message/append.sql\");\ninclude_str!(\"queries/message/gone.sql\");\ninclude_str!(concat!(\"a\", \"b\"));\n",
            &[
                "crates/s/src/queries.rs:2: `crates/s/src/queries/message/gone.sql` is not there; add the file or correct the path",
                "crates/s/src/queries.rs:3: the path of this inclusion is put together; write a plain string literal",
            ],
        );
    }
}
