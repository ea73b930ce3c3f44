//! The document of the state machine is the one that the core's table gives.

use super::finding::Finding;
use super::tree::Tree;

/// The generated document.
pub(crate) const STATE_MACHINE: &str = "docs/state-machine.md";

/// Finds the first line that differs.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    compare(tree.get(STATE_MACHINE).unwrap_or_default(), &mailslot_core::state_machine_markdown())
}

fn compare(found: &str, wanted: &str) -> Vec<Finding> {
    if found == wanted {
        return Vec::new();
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(found, wanted)| found == wanted).count();
    let problem = "the document is not what the table of the core says";
    vec![Finding::new(STATE_MACHINE, same + 1, problem, "run `cargo xtask fix`")]
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[test]
    fn the_first_differing_line_is_named() {
        assert!(compare("a\nb\n", "a\nb\n").is_empty());
        let found = lines(&compare("a\nx\n", "a\nb\n"));
        assert!(found[0].starts_with("docs/state-machine.md:2: "), "{found:?}");
        let found = lines(&compare("", "a\n"));
        assert!(found[0].starts_with("docs/state-machine.md:1: "), "{found:?}");
    }
}
