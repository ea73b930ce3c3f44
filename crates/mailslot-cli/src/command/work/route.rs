//! Which command takes which contract.

use globset::{Glob, GlobMatcher};
use mailslot::Contract;
use std::sync::Arc;

/// A pattern and the command behind it.
#[derive(Debug, Clone)]
pub(super) struct Route {
    glob: GlobMatcher,
    pub(super) command: Arc<str>,
}

impl Route {
    /// Reads `GLOB=exec:COMMAND`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let fix = "write it as 'GLOB=exec:COMMAND', such as 'orders.*=exec:./handle-order'";
        let (glob, command) = text.split_once("=exec:").ok_or_else(|| format!("no route: {fix}"))?;
        if glob.trim().is_empty() || command.trim().is_empty() {
            return Err(format!("glob and command must not be blank: {fix}"));
        }
        let glob = Glob::new(glob).map_err(|error| format!("no glob ({}): {fix}", error.kind()))?;
        Ok(Self { glob: glob.compile_matcher(), command: Arc::from(command) })
    }

    /// Whether it takes messages of this contract: by its name, or by `name@version`.
    pub(super) fn takes(&self, contract: &Contract) -> bool {
        self.glob.is_match(contract.name()) || self.glob.is_match(contract.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(glob: &str, contract: &str, takes: bool) {
        let route = Route::read(&format!("{glob}=exec:true")).unwrap();
        assert_eq!(route.takes(&contract.parse().unwrap()), takes, "{glob} {contract}");
    }

    #[test]
    fn globs_match_the_name_or_name_and_version() {
        check("orders.*", "orders.placed@1", true);
        check("orders.*", "invoices.sent@1", false);
        check("orders.placed", "orders.placed@3", true);
        check("orders.placed@3", "orders.placed@3", true);
        check("orders.placed@3", "orders.placed@4", false);
        check("{orders,invoices}.*@[12]", "invoices.sent@2", true);
        check("*", "a/b@1", true);
    }

    #[test]
    fn a_route_says_how_it_is_written() {
        for bad in ["", "orders.*", "orders.*=exec:", "=exec:true", "[=exec:true", "orders.*:true"] {
            let error = Route::read(bad).unwrap_err();
            assert!(error.contains("GLOB=exec:COMMAND"), "{bad}: {error}");
        }
        assert_eq!(&*Route::read("a=exec:x --y=exec:z").unwrap().command, "x --y=exec:z");
    }
}
