//! Migrations go both ways and leave out no number.

use super::finding::Finding;
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Finds names that are no migration, missing halves, and numbers that are left out or given twice.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in tree.files().keys() {
        if let Some((folder, name)) =
            path.rsplit_once('/').filter(|(folder, _)| folder.contains("/migrations"))
        {
            folders.entry(folder).or_default().push(name);
        }
    }
    folders.iter().flat_map(|(folder, names)| check_folder(folder, names)).collect()
}

fn check_folder(folder: &str, names: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Number and name, with the directions that are there.
    let mut migrations: BTreeMap<(u32, &str), BTreeSet<&str>> = BTreeMap::new();
    for name in names.iter().filter(|name| **name != "README.md") {
        match parse(name) {
            Some((number, title, direction)) => {
                migrations.entry((number, title)).or_default().insert(direction);
            }
            None => findings.push(Finding::new(
                format!("{folder}/{name}"),
                1,
                "the name is no migration's",
                "name it NNNN_verb_object.up.sql or .down.sql",
            )),
        }
    }
    for (expected, ((number, title), directions)) in (1..).zip(&migrations) {
        for direction in ["up", "down"].into_iter().filter(|direction| !directions.contains(direction)) {
            let file = format!("{folder}/{number:04}_{title}.{direction}.sql");
            findings.push(Finding::new(file, 1, "this half of the migration is missing", "write it"));
        }
        if *number != expected {
            let file = format!("{folder}/{number:04}_{title}.up.sql");
            let problem = format!("the number is {number:04} where {expected:04} comes next");
            findings.push(Finding::new(file, 1, problem, "number unreleased migrations without a gap"));
            break;
        }
    }
    findings
}

/// Takes `0001_create_message.up.sql` apart.
fn parse(name: &str) -> Option<(u32, &str, &str)> {
    let (stem, direction) = name.strip_suffix(".sql")?.rsplit_once('.')?;
    let (number, title) = stem.split_once('_')?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let fits = number.len() == 4 && !title.is_empty() && title.chars().all(plain);
    (fits && matches!(direction, "up" | "down")).then_some(())?;
    Some((number.parse().ok()?, title, direction))
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[track_caller]
    fn check_names(names: &[&str], expected: &[&str]) {
        let findings = check_folder("m", names);
        assert_eq!(lines(&findings), expected);
    }

    #[test]
    fn each_folder_is_found_in_the_tree() {
        let tree = Tree::from([
            ("crates/s/migrations/0001_a.up.sql", ""),
            ("crates/s/migrations/README.md", ""),
            ("crates/s/src/queries/a.sql", ""),
        ]);
        let found = lines(&check(&tree));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/s/migrations/0001_a.down.sql:1: "), "{found:?}");
    }

    #[test]
    fn pairs_in_order_are_fine() {
        check_names(
            &[
                "0001_create_message.up.sql",
                "0001_create_message.down.sql",
                "0002_add_saga.up.sql",
                "0002_add_saga.down.sql",
            ],
            &[],
        );
    }

    #[test]
    fn a_missing_half_is_found() {
        check_names(
            &["0001_create_message.up.sql"],
            &["m/0001_create_message.down.sql:1: this half of the migration is missing; write it"],
        );
    }

    #[test]
    fn a_gap_is_found() {
        check_names(
            &["0001_a.up.sql", "0001_a.down.sql", "0003_b.up.sql", "0003_b.down.sql"],
            &[
                "m/0003_b.up.sql:1: the number is 0003 where 0002 comes next; number unreleased migrations without a gap",
            ],
        );
    }

    #[test]
    fn one_number_has_one_change() {
        check_names(
            &["0001_a.up.sql", "0001_a.down.sql", "0001_b.up.sql", "0001_b.down.sql"],
            &[
                "m/0001_b.up.sql:1: the number is 0001 where 0002 comes next; number unreleased migrations without a gap",
            ],
        );
    }

    #[test]
    fn another_name_is_found() {
        for name in ["1_create.up.sql", "0001_create.sql", "0001_Create.up.sql", "0001.up.sql", "notes.txt"] {
            let found = lines(&check_folder("m", &[name]));
            assert_eq!(
                found,
                [format!(
                    "m/{name}:1: the name is no migration's; name it NNNN_verb_object.up.sql or .down.sql"
                )]
            );
        }
    }
}
