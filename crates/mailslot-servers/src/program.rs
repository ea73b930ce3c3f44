//! Programs that are installed.

use std::path::PathBuf;

/// Where programs are that only administrators run; often not in the search path of others.
const ADMINISTRATORS_FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Finds a program in the search path, or where administrators have theirs.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ADMINISTRATORS_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_and_one_that_is_not_there_is_not() {
        assert!(find_program("sh").is_some_and(|program| program.ends_with("sh")));
        assert_eq!(find_program("no-program-has-this-name"), None);
    }
}
