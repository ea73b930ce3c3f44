//! The rules of a contract's name and version: those of `Contract::new` in `mailslot-core`, applied to literals.

use proc_macro2::Span;
use syn::{Error, Lit, Result};

/// Longest name in UTF-16 units: `ENDPOINT_UNITS_MAX` of `mailslot-core`, on which this crate cannot depend.
const NAME_UNITS_MAX: usize = 260;

/// A contract as it was written.
#[derive(Default)]
pub(crate) struct ContractLiterals {
    pub(crate) name: Option<Lit>,
    pub(crate) version: Option<Lit>,
}

/// A contract that keeps the rules.
pub(crate) struct CheckedContract {
    pub(crate) name: String,
    pub(crate) version: u32,
    /// Where its name stands.
    pub(crate) span: Span,
}

impl ContractLiterals {
    /// Checks both literals and reports everything that is wrong with either.
    ///
    /// `owner` is the place to point at for what is missing.
    pub(crate) fn check(&self, owner: Span) -> Result<CheckedContract> {
        match (self.checked_name(owner), self.checked_version(owner)) {
            (Ok((name, span)), Ok(version)) => Ok(CheckedContract { name, version, span }),
            (Err(mut error), Err(other)) => {
                error.combine(other);
                Err(error)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    fn checked_name(&self, owner: Span) -> Result<(String, Span)> {
        let fail = |span, text: String| Err(Error::new(span, text));
        match &self.name {
            None => {
                let text = "the contract has no name; add `name = \"…\"`, a name that outlives the Rust type";
                fail(owner, text.into())
            }
            Some(Lit::Str(literal)) => match check_name(&literal.value()) {
                Ok(()) => Ok((literal.value(), literal.span())),
                Err(text) => fail(literal.span(), text),
            },
            Some(other) => fail(other.span(), "the contract's name is not a string; put it in quotes".into()),
        }
    }

    fn checked_version(&self, owner: Span) -> Result<u32> {
        match &self.version {
            None => Err(Error::new(owner, "the contract has no version; add `version = 1`")),
            Some(Lit::Int(literal)) => {
                check_version(literal.base10_digits()).map_err(|text| Error::new(literal.span(), text))
            }
            Some(other) => Err(Error::new(
                other.span(),
                "the contract's version is not a whole number; write `version = 1`",
            )),
        }
    }
}

fn check_name(name: &str) -> std::result::Result<(), String> {
    let units = name.encode_utf16().count();
    if name.trim().is_empty() {
        Err("the contract's name is blank; give it a visible one such as \"shop.order\"".into())
    } else if units > NAME_UNITS_MAX {
        Err(format!("the contract's name has {units} UTF-16 units; shorten it to {NAME_UNITS_MAX} or fewer"))
    } else if name.chars().any(char::is_control) {
        Err("the contract's name has a control character; remove it (NUL, tab and line break count)".into())
    } else if name.contains('@') {
        Err("the contract's name has an `@`, which separates name and version; remove it".into())
    } else {
        Ok(())
    }
}

fn check_version(digits: &str) -> std::result::Result<u32, String> {
    // `i32` because stores keep the version in a signed 32-bit column.
    match digits.parse::<i32>() {
        Ok(version @ 1..) => Ok(version.unsigned_abs()),
        _ => Err(format!("the contract's version is out of range; count from 1, at most to {}", i32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailslot_core::Contract;

    #[test]
    fn names_follow_the_rules_of_the_core() {
        let long = "n".repeat(260);
        let wide = "\u{1f600}".repeat(130);
        let good = ["shop.order", " padded ", "e\u{301}", &long, &wide];
        let too_long = "n".repeat(261);
        let too_wide = "\u{1f600}".repeat(131);
        let bad = ["", " ", "\u{2003}", "a\0", "a\n", "a\u{85}", "a@1", "@", &too_long, &too_wide];
        for name in good.iter().chain(&bad) {
            assert_eq!(check_name(name).is_ok(), Contract::new(*name, 1).is_ok(), "{name:?}");
        }
        assert!(good.iter().all(|name| check_name(name).is_ok()));
        assert!(bad.iter().all(|name| check_name(name).is_err()));
    }

    #[test]
    fn versions_follow_the_rules_of_the_core() {
        for version in [0, 1, 2, 2_147_483_647, 2_147_483_648, u32::MAX] {
            let found = check_version(&version.to_string());
            assert_eq!(found.is_ok(), Contract::new("n", version).is_ok(), "{version}");
        }
        assert_eq!(check_version("2147483647"), Ok(2_147_483_647));
        for bad in ["-1", "4294967297", "99999999999999999999"] {
            assert!(check_version(bad).is_err(), "{bad}");
        }
    }
}
