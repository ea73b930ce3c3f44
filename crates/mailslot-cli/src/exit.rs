//! The exit codes: part of the interface. The numbers above 63 are those of BSD's `sysexits.h`, so that a command run
//! by `mailslot work` can be `mailslot` itself.

use std::fmt::Write as _;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Something is wrong, or something unforeseen happened.
    Failed,
    /// The command line cannot be understood.
    Usage,
    /// An argument or an input was read and refused.
    BadInput,
    /// What was named does not exist.
    NotFound,
    /// The store cannot be used now.
    Unavailable,
    /// The key or id was used before with other content.
    Conflict,
    /// Try again: someone else was in the way.
    TryAgain,
    /// The store's schema is not one of ours, or newer.
    Schema,
}

/// Every code with its meaning, in order: for `mailslot help exit-codes` and `docs/cli.md`.
pub(crate) const EXIT_CODES: &[(u8, &str, &str)] = &[
    (0, "ok", "done"),
    (1, "failed", "`doctor` found something wrong, or something unforeseen happened"),
    (2, "usage", "the command line cannot be understood; nothing was done"),
    (65, "bad input", "an argument, a file or a line was read and refused"),
    (66, "not found", "no such message, redrive, store or input file"),
    (69, "unavailable", "the store cannot be opened, read or written now"),
    (73, "conflict", "the key or id was used before with other content"),
    (75, "try again", "another program was in the way for too long; the same command may succeed later"),
    (78, "schema", "the store's schema is missing, of another program, or of a newer version of this one"),
];

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::BadInput => 65,
            Self::NotFound => 66,
            Self::Unavailable => 69,
            Self::Conflict => 73,
            Self::TryAgain => 75,
            Self::Schema => 78,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The table as text.
pub(crate) fn exit_codes_text() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, name, meaning) in EXIT_CODES {
        let _ = writeln!(text, "  {code:>3}  {name:<12} {meaning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table() {
        let all = [
            Exit::Failed,
            Exit::Usage,
            Exit::BadInput,
            Exit::NotFound,
            Exit::Unavailable,
            Exit::Conflict,
            Exit::TryAgain,
            Exit::Schema,
        ];
        let codes: Vec<_> = [0].into_iter().chain(all.map(Exit::code)).collect();
        let listed: Vec<_> = EXIT_CODES.iter().map(|(code, ..)| *code).collect();
        assert_eq!(codes, listed);
    }

    #[test]
    fn the_manual_has_the_same_table() {
        let manual = include_str!("../../../docs/cli.md");
        for (code, name, meaning) in EXIT_CODES {
            let row = format!("| {code} | {name} | {meaning} |");
            assert!(manual.contains(&row), "docs/cli.md lacks: {row}");
        }
    }
}
