//! The account that servers run as: neither PostgreSQL nor pgbouncer runs as root.

use crate::error::{Explain, ServerError};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The accounts that are tried when root starts the servers: the package's own, then the one that every system has.
const UNPRIVILEGED: &[&str] = &["postgres", "nobody"];

/// Who a server runs as: whoever starts it, or an unprivileged account if that is root.
#[derive(Debug, Clone, Copy)]
pub struct Account(Option<Ids>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ids {
    user: u32,
    group: u32,
}

impl Account {
    /// Finds the account.
    ///
    /// # Errors
    /// Root starts it, and there is no unprivileged account.
    pub fn find() -> Result<Self, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let accounts = std::fs::read_to_string("/etc/passwd").explain(|| "read /etc/passwd".into())?;
        let ids = UNPRIVILEGED.iter().find_map(|name| find_ids(&accounts, name));
        let problem = "servers do not run as root, and there is neither an account `postgres` nor `nobody`";
        ids.map(|ids| Self(Some(ids))).ok_or_else(|| ServerError::new(problem))
    }

    /// Makes the command run as this account, without any other group of root.
    pub fn apply(self, command: &mut Command) {
        if let Some(Ids { user, group }) = self.0 {
            command.uid(user).gid(group);
        }
    }

    /// Gives a file or a directory to this account.
    pub(crate) fn own(self, path: &Path) -> Result<(), ServerError> {
        let Some(Ids { user, group }) = self.0 else {
            return Ok(());
        };
        std::os::unix::fs::chown(path, Some(user), Some(group))
            .explain(|| format!("give {} to the servers' account", path.display()))
    }
}

/// Reads a line such as `postgres:x:101:104:PostgreSQL administrator:/var/lib/postgresql:/bin/bash`.
fn find_ids(accounts: &str, name: &str) -> Option<Ids> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        let (user, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        is_it.then_some(Ids { user, group })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\n\
        postgres-old:x:7:8::/:/bin/sh\n\
        broken\n\
        postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        assert_eq!(find_ids(ACCOUNTS, "postgres"), Some(Ids { user: 101, group: 104 }));
        assert_eq!(find_ids(ACCOUNTS, "root"), Some(Ids { user: 0, group: 0 }));
    }

    #[test]
    fn an_account_that_is_not_there_is_not_made_up() {
        assert_eq!(find_ids(ACCOUNTS, "nobody"), None);
        assert_eq!(find_ids(ACCOUNTS, "broken"), None);
    }
}
