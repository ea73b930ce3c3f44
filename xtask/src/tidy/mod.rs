//! `cargo xtask tidy`: the rules of this repository that no compiler knows. Each finding names file, line and fix.
//!
//! A rule is a function from what was read (files, dependencies) to findings, so its tests need no folder.

mod core_tree;
mod finding;
mod floors;
mod manifests;
mod migrations;
mod queries;
mod sources;
mod state_machine;
mod text;
mod tree;

use crate::step::{say, workspace};
use anyhow::{Result, bail};
use tree::Tree;

pub(crate) use state_machine::STATE_MACHINE;

/// Applies every rule and prints what they found.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::read(&workspace()?)?;
    say(&format!("==> tidy: {} text files", tree.files().len()));
    let mut findings = [
        floors::check(&floors::read()?, &tree),
        core_tree::check()?,
        manifests::check(&tree),
        queries::check(&tree),
        migrations::check(&tree),
        sources::check(&tree),
        text::check(&tree),
        state_machine::check(&tree),
    ]
    .concat();
    findings.sort();
    for finding in &findings {
        say(&finding.to_string());
    }
    if !findings.is_empty() {
        bail!("tidy found {} of them", findings.len());
    }
    say("==> tidy: ok");
    Ok(())
}
