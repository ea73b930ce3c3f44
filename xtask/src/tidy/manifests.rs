//! Every crate takes the workspace's lints.

use super::finding::Finding;
use super::tree::Tree;

/// Finds each manifest of a package without `[lints] workspace = true`.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending("Cargo.toml").filter_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Option<Finding> {
    let manifest: toml::Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            return Some(Finding::new(path, 1, format!("no TOML ({})", error.message()), "mend it"));
        }
    };
    if !manifest.contains_key("package") {
        return None;
    }
    let taken = manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
    if taken == Some(true) {
        return None;
    }
    let line = text.lines().position(|line| line == "[lints]").map_or(1, |index| index + 1);
    Some(Finding::new(
        path,
        line,
        "the workspace's lints are not taken",
        "add `[lints]` and `workspace = true`",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[test]
    fn a_package_without_the_lints_is_found() {
        let tree = Tree::from([
            ("Cargo.toml", "[workspace]\nmembers = []\n"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"),
            ("crates/b/Cargo.toml", "[package]\nname = \"b\"\n"),
            ("crates/c/Cargo.toml", "[package]\nname = \"c\"\n\n[lints]\nworkspace = false\n"),
        ]);
        let fix = "the workspace's lints are not taken; add `[lints]` and `workspace = true`";
        let expected = [format!("crates/b/Cargo.toml:1: {fix}"), format!("crates/c/Cargo.toml:4: {fix}")];
        assert_eq!(lines(&check(&tree)), expected);
    }
}
