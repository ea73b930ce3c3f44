//! Text is plain, and nothing in it is true on one machine only.

use super::finding::Finding;
use super::tree::Tree;

/// The folders at the root of a machine in which developers and build servers work.
const MACHINE_FOLDERS: &[&str] = &["home", "root", "Users", "work", "tmp"];

/// Finds emoji and absolute paths of one machine.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files().iter().flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(found) = line.chars().find(|&c| is_emoji(c)) {
            let problem = format!("the line has the emoji U+{:04X}", u32::from(found));
            findings.push(Finding::new(path, index + 1, problem, "use a word"));
        }
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
            let problem = format!("the line has a path in the folder `{folder}` of one machine");
            findings.push(Finding::new(
                path,
                index + 1,
                problem,
                "use a path from the workspace, or a temporary folder",
            ));
        }
    }
    findings
}

/// The blocks of pictures; arrows, mathematics and box drawing are text.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x1F000..=0x1FAFF | 0x2600..=0x27BF | 0x2B1B | 0x2B1C | 0x2B50 | 0x2B55 | 0xFE0F)
}

/// Whether the line has an absolute path that begins with this folder.
fn names_folder(line: &str, folder: &str) -> bool {
    // A path that goes on to the left, or an address, is not absolute.
    let goes_on =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | ')' | '>' | '$' | '*');
    let unix = format!("/{folder}/");
    let windows = format!(":\\{folder}\\");
    let begins = |at: usize| line[..at].chars().next_back().is_none_or(|before| !goes_on(before));
    line.match_indices(&unix).any(|(at, _)| begins(at)) || line.contains(&windows)
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[track_caller]
    fn check_line(line: &str, found: bool) {
        let tree = Tree::from([("a.md", line)]);
        assert_eq!(!check(&tree).is_empty(), found, "{line}");
    }

    #[test]
    fn emoji_are_found_and_other_signs_are_not() {
        check_line("done \u{1F389}", true);
        check_line("\u{2705} done", true);
        check_line("a \u{2192} b, \u{b1}20 %, \u{2014}, \u{2500}\u{251c}, \u{e9}\u{4e2d}", false);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            check_line(&format!("see /{folder}/someone/notes"), true);
            check_line(&format!("open(\"/{folder}/x\")"), true);
            check_line(&format!("sqlite:///{folder}/x.db"), true);
            check_line(&format!("C:\\{folder}\\x"), true);
            check_line(&format!("crates/{folder}/x"), false);
            check_line(&format!("https://example.org/{folder}/x"), false);
        }
    }

    #[test]
    fn the_line_is_named() {
        let tree = Tree::from([("a.md", "plain\n\n\u{1F389}\n")]);
        assert_eq!(lines(&check(&tree)), ["a.md:3: the line has the emoji U+1F389; use a word"]);
    }
}
