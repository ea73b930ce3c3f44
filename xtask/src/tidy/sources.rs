//! Every source file says what it is for, and every lint that is switched off says why.

use super::finding::Finding;
use super::tree::Tree;

/// Finds sources without a module comment, and `allow` where `expect` with a reason belongs.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending(".rs").flat_map(|(path, text)| check_source(path, text)).collect()
}

fn check_source(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let begin = text.trim_start();
    if !begin.starts_with("//!") && !begin.starts_with("#![doc = include_str!(") {
        findings.push(Finding::new(
            path,
            1,
            "the file does not say what it is for",
            "begin it with a `//!` comment of one sentence",
        ));
    }
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        if ["#[", "#!["].iter().any(|open| line.contains(&format!("{open}allow("))) {
            let fix = "write `#[expect(lint, reason = \"…\")]`, which also says when it is no longer needed";
            findings.push(Finding::new(path, index + 1, "a lint is switched off without a reason", fix));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[track_caller]
    fn check_text(text: &str, found: &[&str]) {
        let tree = Tree::from([("a.rs", text), ("a.md", "plain")]);
        let problems: Vec<_> = lines(&check(&tree));
        assert_eq!(problems.len(), found.len(), "{problems:?}");
        assert!(problems.iter().zip(found).all(|(line, start)| line.starts_with(start)), "{problems:?}");
    }

    #[test]
    fn a_source_begins_with_its_purpose() {
        check_text("//! Text.\n", &[]);
        check_text("#![doc = include_str!(\"../README.md\")]\n", &[]);
        check_text("// Text.\n", &["a.rs:1: the file does not say"]);
        check_text("", &["a.rs:1: the file does not say"]);
    }

    #[test]
    fn a_lint_is_not_switched_off_in_silence() {
        let source = |attribute: &str| format!("//! Text.\n\n    {attribute}(dead_code)]\n");
        let allow = "allow";
        check_text(&source(&format!("#[{allow}")), &["a.rs:3: a lint is switched off"]);
        check_text(&source(&format!("#![{allow}")), &["a.rs:3: a lint is switched off"]);
        check_text(&source("#[expect"), &[]);
        check_text(&source(&format!("// #[{allow}")), &[]);
    }
}
