//! Opening the store that the command line names.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use mailslot::{AnyStore, Operator};
use std::path::Path;

/// What to do about a store that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make it.
    Create,
    /// Refuse: who only looks or repairs has mistyped the path, or the URL.
    Refuse,
}

/// Opens the store. Whoever may make it also brings its schema up to date.
pub(crate) async fn open(global: &Global, missing: Missing) -> Result<AnyStore, Error> {
    let new = path_of(&global.store).filter(|path| !path.exists());
    if let Some(path) = new.filter(|_| missing == Missing::Refuse) {
        let text = format!(
            "there is no store at `{}`: name it with --store or MAILSLOT_STORE, or make it with `mailslot migrate`",
            path.display()
        );
        return Err(Error::new(Exit::NotFound, text));
    }
    let store = match missing {
        Missing::Create => mailslot::open(&global.store).await?,
        Missing::Refuse => mailslot::open_existing(&global.store).await?,
    };
    if let Some(path) = new {
        tracing::info!(path = %path.display(), "made a new store");
    }
    if global.store.starts_with("memory:") {
        tracing::warn!("a store in memory is forgotten when this command ends");
    }
    Ok(store)
}

/// Opens a store that is there, for people.
pub(crate) async fn open_operator(global: &Global) -> Result<Operator, Error> {
    Ok(Operator::new(open(global, Missing::Refuse).await?))
}

/// The file that a URL names, if it names one.
pub(crate) fn path_of(url: &str) -> Option<&Path> {
    let path = match url.split_once(':') {
        Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
        Some(("memory", _)) => return None,
        Some((_, rest)) if rest.starts_with("//") => return None,
        _ => url,
    };
    // What names no file is refused by the store, with its own words.
    (!path.is_empty() && path != ":memory:" && !path.contains('?')).then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_files() {
        let check = |url, path: Option<&str>| assert_eq!(path_of(url), path.map(Path::new), "{url}");
        check("inbox.db", Some("inbox.db"));
        check("sqlite:inbox.db", Some("inbox.db"));
        check("sqlite:///var/lib/inbox.db", Some("/var/lib/inbox.db"));
        check("memory:", None);
        check("postgres://host/db", None);
        check("postgresql:///db?host=/run/postgresql", None);
        check("sqlite:", None);
    }
}
