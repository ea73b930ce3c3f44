//! Stores to measure in: beside the user's own, on the same disk or server, and gone afterwards.

use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;
use crate::store::path_of;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// What the names of scratch schemas and folders begin with.
const PREFIX: &str = "mailslot_bench_";

/// A store of its own for one measurement. [`Scratch::remove`] takes it away.
#[derive(Debug)]
pub(super) struct Scratch {
    url: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Memory,
    Folder(PathBuf),
    Schema { database: String, name: String },
}

/// Where it was measured, for people.
#[derive(Debug, Clone, Copy)]
pub(super) enum Used {
    Nothing,
    Memory,
    File,
    Schema,
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing was touched",
            Self::Memory => "measured in memory",
            Self::File => "measured in files of its own beside the store's; they are removed",
            Self::Schema => "measured in schemas of its own in the store's database; they are dropped",
        })
    }
}

impl Scratch {
    /// A store that does not exist yet, beside the one that `url` names.
    pub(super) fn beside(url: &str) -> Result<Self, Error> {
        let name = format!("{PREFIX}{}", Uuid::new_v4().simple());
        if url.starts_with("memory:") {
            return Ok(Self { url: url.to_owned(), kind: Kind::Memory });
        }
        if is_postgres(url) {
            let database = without_schema(url);
            let mark = if database.contains('?') { '&' } else { '?' };
            let url = format!("{database}{mark}mailslot_schema={name}");
            return Ok(Self { url, kind: Kind::Schema { database, name } });
        }
        let Some(path) = path_of(url) else {
            let text = "the store's URL names no file to measure beside: name one with --store";
            return Err(Error::new(Exit::BadInput, text));
        };
        let folder = path.with_file_name(name);
        std::fs::create_dir(&folder).map_err(|error| {
            let text = format!(
                "cannot measure beside `{}`: {error}; name a store in a folder that is there",
                path.display()
            );
            Error::new(Exit::Unavailable, text)
        })?;
        Ok(Self { url: folder.join("bench.db").display().to_string(), kind: Kind::Folder(folder) })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn used(&self) -> Used {
        match self.kind {
            Kind::Memory => Used::Memory,
            Kind::Folder(_) => Used::File,
            Kind::Schema { .. } => Used::Schema,
        }
    }

    /// Takes it away.
    pub(super) async fn remove(self) -> Result<(), Error> {
        match self.kind {
            Kind::Memory => Ok(()),
            Kind::Folder(folder) => remove_folder(&folder).await.map_err(|error| {
                Error::unforeseen(&format!("cannot remove the folder `{}`", folder.display()), error)
            }),
            Kind::Schema { database, name } => postgres::drop_schema(&database, &name).await,
        }
    }
}

/// The threads of the driver may still be making files in it when a measurement was interrupted.
async fn remove_folder(folder: &Path) -> std::io::Result<()> {
    const TRIES: u32 = 100;
    for _ in 1..TRIES {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            removed => return removed,
        }
    }
    std::fs::remove_dir_all(folder)
}

/// Says what runs that were killed have left behind.
pub(super) async fn report_leftovers(url: &str, output: Output) -> Result<(), Error> {
    if !is_postgres(url) {
        return Ok(());
    }
    for name in postgres::find_schemas(&without_schema(url)).await? {
        output.note(format!(
            "the schema {name} is of a `mailslot bench` that still runs, or was killed: then drop it by DROP SCHEMA {name} CASCADE"
        ));
    }
    Ok(())
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// The URL without our own parameter, which the driver does not know.
fn without_schema(url: &str) -> String {
    let Some((base, query)) = url.split_once('?') else { return url.to_owned() };
    let others: Vec<_> = query.split('&').filter(|pair| !pair.starts_with("mailslot_schema=")).collect();
    if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) }
}

#[cfg(feature = "postgres")]
mod postgres {
    //! Schemas, by the driver: the store has no business with dropping them.

    use super::PREFIX;
    use crate::error::Error;
    use crate::exit::Exit;
    use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};

    /// Sessions of a measurement that was interrupted end by themselves, within a moment.
    const WAIT_FOR_LOCKS: &str = "SET lock_timeout = '30s'; SET client_min_messages = warning";

    /// How often a schema is dropped until it is gone.
    const DROPS_MAX: u32 = 10;

    async fn connect(database: &str) -> Result<PgConnection, Error> {
        let failed = |error: sqlx::Error| {
            let source = error.as_database_error().map(ToString::to_string);
            // Errors of other kinds may repeat the URL, and with it a password.
            let why =
                source.unwrap_or_else(|| "the server does not answer, or the URL cannot be read".into());
            Error::new(Exit::Unavailable, format!("cannot connect to the database: {why}"))
        };
        let options: sqlx::postgres::PgConnectOptions = database.parse().map_err(failed)?;
        options.disable_statement_logging().connect().await.map_err(failed)
    }

    /// Schemas of measurements, of this run or another one.
    pub(super) async fn find_schemas(database: &str) -> Result<Vec<String>, Error> {
        let mut db = connect(database).await?;
        let sql = "SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname, $1) ORDER BY nspname";
        let found = sqlx::query_scalar(sql).persistent(false).bind(PREFIX).fetch_all(&mut db).await;
        found.map_err(|error| Error::unforeseen("cannot look for schemas of earlier measurements", error))
    }

    pub(super) async fn drop_schema(database: &str, name: &str) -> Result<(), Error> {
        let mut db = connect(database).await?;
        let sql = format!("{WAIT_FOR_LOCKS}; DROP SCHEMA IF EXISTS {name} CASCADE");
        let mut tries = 1;
        loop {
            match sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut db).await {
                Ok(_) => return Ok(()),
                // A session of the interrupted measurement that took its locks in another order.
                Err(error) if tries < DROPS_MAX && is_deadlock(&error) => tries += 1,
                Err(error) => {
                    return Err(Error::unforeseen(&format!("cannot drop the schema {name}"), error));
                }
            }
        }
    }

    fn is_deadlock(error: &sqlx::Error) -> bool {
        error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .is_some_and(|code| code == "40P01")
    }
}

#[cfg(not(feature = "postgres"))]
mod postgres {
    //! A program without PostgreSQL opens no store there, so there is nothing to drop.

    use crate::error::Error;

    #[expect(clippy::unused_async, reason = "the same signature as with PostgreSQL")]
    pub(super) async fn find_schemas(_database: &str) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    #[expect(clippy::unused_async, reason = "the same signature as with PostgreSQL")]
    pub(super) async fn drop_schema(_database: &str, _name: &str) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_the_inbox_is_never_the_one_to_measure_in() {
        let url = "postgres://u:p@h/app?sslmode=disable&mailslot_schema=inbox";
        let scratch = Scratch::beside(url).unwrap();
        assert!(
            !scratch.url().contains("=inbox")
                && scratch.url().contains("?sslmode=disable&mailslot_schema=mailslot_bench_")
        );
        assert_eq!(without_schema("postgres://h/app?mailslot_schema=inbox"), "postgres://h/app");
        let scratch = Scratch::beside("postgres://h/app").unwrap();
        assert!(scratch.url().starts_with("postgres://h/app?mailslot_schema=mailslot_bench_"));
    }
}
