//! Crates depend downwards only, so that a driver can never reach the core and siblings never know each other.

use super::finding::Finding;
use super::tree::Tree;
use crate::step::workspace;
use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// The floor of each crate. A crate may use crates of lower floors only.
const FLOORS: &[(&str, u8)] = &[
    ("mailslot-core", 0),
    ("mailslot-macros", 0),
    ("mailslot-servers", 0),
    ("mailslot-broker-rabbitmq", 1),
    ("mailslot-engine", 1),
    ("mailslot-store-postgres", 1),
    ("mailslot-store-sqlite", 1),
    // Above the engine, because it runs the engine's suite; only tests may use it, so it stands in nobody's way.
    (TESTKIT, 2),
    ("mailslot", 2),
    ("mailslot-load", 2),
    ("mailslot-cli", 3),
    ("mailslot-bench", 4),
    ("xtask", 4),
];

/// What only tests may use.
const TESTKIT: &str = "mailslot-testkit";

/// A crate of this workspace and the crates of this workspace that it uses outside its tests.
#[derive(Debug)]
pub(crate) struct Member {
    name: String,
    manifest: String,
    uses: Vec<String>,
}

/// Asks cargo for the members of the workspace.
pub(crate) fn read() -> Result<Vec<Member>> {
    let workspace = workspace()?;
    let metadata = MetadataCommand::new()
        .current_dir(&workspace)
        .no_deps()
        .exec()
        .context("cargo cannot describe the workspace")?;
    let members = metadata.workspace_packages().into_iter().map(|package| {
        let manifest = package.manifest_path.strip_prefix(&workspace).unwrap_or(&package.manifest_path);
        let uses = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some() && dependency.kind != DependencyKind::Development)
            .map(|dependency| dependency.name.clone())
            .collect();
        Member { name: package.name.to_string(), manifest: manifest.to_string(), uses }
    });
    Ok(members.collect())
}

/// Finds each dependency that does not lead downwards.
pub(crate) fn check(members: &[Member], tree: &Tree) -> Vec<Finding> {
    members.iter().flat_map(|member| check_member(member, tree)).collect()
}

fn check_member(member: &Member, tree: &Tree) -> Vec<Finding> {
    let Some(floor) = floor_of(&member.name) else {
        let problem = format!("crate `{}` has no floor", member.name);
        return vec![Finding::new(
            &member.manifest,
            1,
            problem,
            "add it to FLOORS in xtask/src/tidy/floors.rs",
        )];
    };
    let find = |used: &String| {
        let line = line_of(tree.get(&member.manifest).unwrap_or_default(), used);
        if used == TESTKIT {
            let problem = format!("`{}` ships the test kit", member.name);
            let fix = "move it to [dev-dependencies]";
            return Some(Finding::new(&member.manifest, line, problem, fix));
        }
        let below = floor_of(used)?;
        (below >= floor).then(|| {
            let problem = format!("floor {floor} (`{}`) uses floor {below} (`{used}`)", member.name);
            Finding::new(
                &member.manifest,
                line,
                problem,
                "move what it needs to a lower floor, such as the core",
            )
        })
    };
    member.uses.iter().filter_map(find).collect()
}

fn floor_of(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(member, _)| *member == name).map(|&(_, floor)| floor)
}

fn line_of(manifest: &str, dependency: &str) -> usize {
    let starts =
        |line: &str| line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(starts).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[track_caller]
    fn check_uses(name: &str, uses: &[&str], expected: &[&str]) {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text =
            "[dependencies]\nmailslot-engine.workspace = true\nmailslot-testkit = { workspace = true }\n";
        let tree = Tree::from([(manifest.as_str(), text)]);
        let uses = uses.iter().map(ToString::to_string).collect();
        let members = [Member { name: name.into(), manifest, uses }];
        assert_eq!(lines(&check(&members, &tree)), expected);
    }

    #[test]
    fn a_crate_may_look_down() {
        check_uses("mailslot", &["mailslot-core", "mailslot-engine", "mailslot-store-sqlite"], &[]);
        check_uses("mailslot-testkit", &["mailslot-core"], &[]);
    }

    #[test]
    fn a_crate_may_not_look_up_or_aside() {
        let fix = "move what it needs to a lower floor, such as the core";
        check_uses(
            "mailslot-core",
            &["mailslot-engine"],
            &[&format!(
                "crates/mailslot-core/Cargo.toml:2: floor 0 (`mailslot-core`) uses floor 1 (`mailslot-engine`); {fix}"
            )],
        );
        check_uses(
            "mailslot-store-sqlite",
            &["mailslot-engine"],
            &[&format!(
                "crates/mailslot-store-sqlite/Cargo.toml:2: floor 1 (`mailslot-store-sqlite`) uses floor 1 (`mailslot-engine`); {fix}"
            )],
        );
    }

    #[test]
    fn nothing_ships_the_test_kit() {
        check_uses(
            "mailslot-bench",
            &["mailslot-testkit"],
            &[
                "crates/mailslot-bench/Cargo.toml:3: `mailslot-bench` ships the test kit; move it to [dev-dependencies]",
            ],
        );
    }

    #[test]
    fn a_new_crate_needs_a_floor() {
        check_uses(
            "mailslot-new",
            &[],
            &[
                "crates/mailslot-new/Cargo.toml:1: crate `mailslot-new` has no floor; add it to FLOORS in xtask/src/tidy/floors.rs",
            ],
        );
    }
}
