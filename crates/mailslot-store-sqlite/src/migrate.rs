//! Setting a file up: whose it is, which migrations it lacks, and whether its schema is what they write.

use crate::config::SqliteOptions;
use crate::connection::BEGIN_IMMEDIATE;
use crate::error::During;
use crate::queries;
use mailslot_core::stored::micros;
use mailslot_core::{StoreError, StoreErrorKind};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// One step of the schema. A released one is never edited.
struct Migration {
    version: u32,
    name: &'static str,
    up: &'static str,
    #[cfg(test)]
    down: &'static str,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            up: include_str!(concat!("../migrations/", $name, ".up.sql")),
            #[cfg(test)]
            down: include_str!(concat!("../migrations/", $name, ".down.sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[migration!(1, "0001_create_inbox")];

/// The schema version of this program.
pub(crate) const WANTED: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// The SQL that makes an empty file into an inbox, for people who apply a schema by hand: what
/// [`SqliteStore::connect`](crate::SqliteStore::connect) does to one, but for the journal mode, which it sets itself.
pub fn schema_sql() -> String {
    let mut script = format!("{};\n\n{};\n", end(queries::SCHEMA_CLAIM_FILE), end(queries::SCHEMA_CREATE));
    for Migration { version, name, up, .. } in MIGRATIONS {
        // The name is our own literal; the time of a migration by hand is not known.
        let record = format!(
            "INSERT INTO mailslot_schema (version, name, migrated_at) VALUES ({version}, '{name}', 0)"
        );
        let _ = write!(script, "\n-- Migration {name}\n\n{}\n\n{record};\n", up.trim_end());
    }
    script
}

fn end(statement: &str) -> &str {
    statement.trim_end().trim_end_matches(';')
}

/// "Mslt" in ASCII, as `queries/schema/claim_file.sql` writes it into the file's header.
const APPLICATION_ID: i64 = 0x4d73_6c74;

/// How long to wait until the journal mode is tried again: SQLite's own waiting does not cover that change.
const JOURNAL_RETRY: Duration = Duration::from_millis(10);

const OPERATION: &str = "open";

fn refuse(detail: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, OPERATION, detail)
}

/// Makes the file ready, or says why it is not ours to use. A file that is refused is left as it was.
pub(crate) async fn prepare(options: &SqliteOptions) -> Result<(), StoreError> {
    let mut db = options.connect_options().connect().await.during(OPERATION)?;
    inspect(&mut db, options).await?;
    switch_to_wal(&mut db, options).await?;
    // The write lock also tells at once whether the file can be written.
    let mut tx = db.begin_with(BEGIN_IMMEDIATE).await.during(OPERATION)?;
    let found = inspect(&mut tx, options).await?;
    migrate(&mut tx, found, options).await?;
    refuse_drift(&mut tx).await?;
    tx.commit().await.during(OPERATION)?;
    db.close().await.during(OPERATION)
}

/// The version of the file's schema, if the file is ours or may become ours.
async fn inspect(db: &mut SqliteConnection, options: &SqliteOptions) -> Result<u32, StoreError> {
    let application: i64 = scalar(db, queries::SCHEMA_APPLICATION_ID).await?;
    let objects: i64 = scalar(db, queries::SCHEMA_COUNT_TABLES).await?;
    let ours: i64 = scalar(db, queries::SCHEMA_EXISTS).await?;
    if ours == 0 {
        let is_new = objects == 0 && [0, APPLICATION_ID].contains(&application);
        if is_new || options.share_with_application {
            return Ok(0);
        }
        return Err(refuse(
            "the file is a database of another program; check the path, \
             or open it with `share_with_application(true)` to put the inbox beside its tables",
        ));
    }
    let found = version(db).await?;
    if found > WANTED {
        let detail = format!(
            "the file has schema version {found} and was written by a newer mailslot; \
             upgrade this program, which knows version {WANTED}"
        );
        return Err(refuse(detail));
    }
    Ok(found)
}

async fn scalar<T>(db: &mut SqliteConnection, query: &'static str) -> Result<T, StoreError>
where
    T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    sqlx::query_scalar(query).fetch_one(db).await.during(OPERATION)
}

/// The version of a schema that is ours.
pub(crate) async fn version(db: &mut SqliteConnection) -> Result<u32, StoreError> {
    let found: i64 = scalar(db, queries::SCHEMA_VERSION).await?;
    Ok(u32::try_from(found).unwrap_or(u32::MAX))
}

/// The log lets readers go on while a writer commits. The change needs the file for itself, so it is made once.
async fn switch_to_wal(db: &mut SqliteConnection, options: &SqliteOptions) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        let switched: Result<String, _> = scalar(db, queries::SCHEMA_USE_WAL).await;
        match switched {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(refuse(format!(
                    "the journal mode stays `{mode}`, but several connections need `wal`; use a local disk"
                )));
            }
            Err(error) if error.is_transient() && started.elapsed() < options.busy_timeout => {
                tokio::time::sleep(JOURNAL_RETRY).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn migrate(db: &mut SqliteConnection, found: u32, options: &SqliteOptions) -> Result<(), StoreError> {
    if found == WANTED {
        return Ok(());
    }
    if !options.migrate {
        let detail = format!(
            "the file has schema version {found} and this program wants {WANTED}; \
             migrate it, or open it with `migrate(true)`"
        );
        return Err(refuse(detail));
    }
    let objects: i64 = scalar(db, queries::SCHEMA_COUNT_TABLES).await?;
    if objects == 0 {
        sqlx::query(queries::SCHEMA_CLAIM_FILE).execute(&mut *db).await.during(OPERATION)?;
    }
    run_migrations(db, found, micros(options.clock.now())).await
}

async fn run_migrations(db: &mut SqliteConnection, found: u32, now: i64) -> Result<(), StoreError> {
    sqlx::query(queries::SCHEMA_CREATE).execute(&mut *db).await.during(OPERATION)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        sqlx::raw_sql(migration.up).execute(&mut *db).await.during(OPERATION)?;
        let record =
            sqlx::query(queries::SCHEMA_RECORD).bind(migration.version).bind(migration.name).bind(now);
        record.execute(&mut *db).await.during(OPERATION)?;
    }
    Ok(())
}

/// Compares the schema with what the migrations write into an empty database, word for word.
pub(crate) async fn refuse_drift(db: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut model = SqliteConnectOptions::new().in_memory(true).connect().await.during(OPERATION)?;
    run_migrations(&mut model, 0, 0).await?;
    let (wanted, found) = (objects(&mut model).await?, objects(db).await?);
    let drift = |name: &str, what: &str| {
        Err(refuse(format!(
            "the schema was changed by hand: `{name}` {what}; undo that change, nothing is altered by itself"
        )))
    };
    for (name, sql) in &wanted {
        match found.get(name) {
            None => return drift(name, "is missing"),
            Some(found) if found != sql => return drift(name, "differs from what this version creates"),
            Some(_) => {}
        }
    }
    match found.keys().find(|name| !wanted.contains_key(*name)) {
        Some(name) => drift(name, "is not ours"),
        None => Ok(()),
    }
}

async fn objects(db: &mut SqliteConnection) -> Result<BTreeMap<String, String>, StoreError> {
    let rows: Vec<(String, String)> =
        sqlx::query_as(queries::SCHEMA_OBJECTS).fetch_all(db).await.during(OPERATION)?;
    Ok(rows.into_iter().collect())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_printed_schema_is_the_one_that_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(dir.path().join("by-hand.db"));
        let mut db = options.connect_options().connect().await.unwrap();
        let script = schema_sql();
        sqlx::raw_sql(sqlx::AssertSqlSafe(script)).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
        prepare(&options.migrate(false)).await.unwrap();
    }

    use super::*;

    async fn memory() -> SqliteConnection {
        SqliteConnectOptions::new().in_memory(true).connect().await.unwrap()
    }

    #[tokio::test]
    async fn every_migration_goes_down_and_up_again() {
        let mut db = memory().await;
        run_migrations(&mut db, 0, 0).await.unwrap();
        let up = objects(&mut db).await.unwrap();
        for migration in MIGRATIONS.iter().rev() {
            sqlx::raw_sql(migration.down).execute(&mut db).await.unwrap();
        }
        assert_eq!(objects(&mut db).await.unwrap().into_keys().collect::<Vec<_>>(), ["mailslot_schema"]);
        sqlx::raw_sql("DELETE FROM mailslot_schema").execute(&mut db).await.unwrap();
        run_migrations(&mut db, 0, 0).await.unwrap();
        assert_eq!(objects(&mut db).await.unwrap(), up);
    }

    #[tokio::test]
    async fn every_statement_fits_the_schema() {
        use sqlx::Executor as _;
        let mut db = memory().await;
        run_migrations(&mut db, 0, 0).await.unwrap();
        for (file, statement) in queries::ALL {
            assert!(statement.starts_with("-- "), "{file} does not say why it is as it is");
            let prepared = db.prepare(sqlx::SqlSafeStr::into_sql_str(*statement)).await;
            assert!(prepared.is_ok(), "{file}: {:?}", prepared.err());
        }
    }

    /// What accepts, claims and settlements run for every batch.
    const HOT: &[&str] = &[
        "lane/find.sql",
        "lease_member/delete.sql",
        "lease_member/find_settled.sql",
        "lease_member/insert.sql",
        "ledger/delete.sql",
        "ledger/find.sql",
        "message/claim.sql",
        "message/keys.sql",
        "outcome/insert_completed.sql",
        "parked/promote.sql",
        "ready/delete.sql",
        "ready/insert_accepted.sql",
        "ready/next_due.sql",
        "ready/pick.sql",
        "session/advance.sql",
        "session/delete_released.sql",
        "session/find.sql",
    ];

    #[tokio::test]
    async fn hot_statements_reach_every_row_by_a_key() {
        let mut db = memory().await;
        run_migrations(&mut db, 0, 0).await.unwrap();
        for hot in HOT {
            let (_, statement) = queries::ALL.iter().find(|(file, _)| file == hot).unwrap();
            let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let steps: Vec<(i64, i64, i64, String)> =
                sqlx::query_as(explain).fetch_all(&mut db).await.unwrap();
            let slow = |step: &str| {
                let walks =
                    step.starts_with("SCAN") && !step.contains("VIRTUAL TABLE") && !step.contains("subquery");
                let walks = walks && !["SCAN picked", "SCAN CONSTANT ROW"].contains(&step);
                walks || step.contains("TEMP B-TREE") || step.contains("AUTOMATIC")
            };
            let slow: Vec<_> = steps.into_iter().filter(|(.., step)| slow(step)).collect();
            assert!(slow.is_empty(), "{hot}: {slow:?}");
        }
    }

    #[test]
    fn every_statement_file_is_used() {
        let mut files = 0;
        for noun in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/queries")).unwrap() {
            files += std::fs::read_dir(noun.unwrap().path()).unwrap().count();
        }
        assert_eq!(files, queries::COUNT);
    }
}
