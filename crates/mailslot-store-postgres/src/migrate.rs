//! Setting a database up: which migrations it lacks, whether its schema is what they write, and how it is connected.

use crate::config::{Pooler, PostgresOptions};
use crate::connection::Sessions;
use crate::error::During;
use crate::link::{Param, Session};
use crate::link_sqlx::SqlxLink;
use crate::partition;
use crate::queries::{self, Statements, in_schema};
use mailslot_core::{StoreError, StoreErrorKind};
use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// One step of the schema. A released one is never edited.
///
/// Steps expand first and contract later: a step may take away only what no program of the version before it still
/// uses, and `oldest_program` says which programs can go on beside the step. So old and new processes run side by side
/// while a new version is rolled out.
struct Migration {
    version: u32,
    oldest_program: u32,
    name: &'static str,
    up: &'static str,
    #[cfg(test)]
    down: &'static str,
}

macro_rules! migration {
    ($version:literal, $oldest_program:literal, $name:literal) => {
        Migration {
            version: $version,
            oldest_program: $oldest_program,
            name: $name,
            up: include_str!(concat!("../migrations/", $name, ".up.sql")),
            #[cfg(test)]
            down: include_str!(concat!("../migrations/", $name, ".down.sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[migration!(1, 1, "0001_create_inbox")];

/// The schema version of this program.
pub(crate) const WANTED: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// What `queries/schema/objects.sql` says of a schema that all migrations made.
const DESCRIPTION: &str = include_str!("../schema/description.txt");

const OPERATION: &str = "open";

fn refuse(detail: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, OPERATION, detail)
}

/// The SQL that makes an empty database into an inbox, for people who apply a schema by hand: what
/// [`PostgresStore::connect`](crate::PostgresStore::connect) does to one.
pub fn schema_sql() -> String {
    let mut script = format!("CREATE SCHEMA mailslot;\n\n{};\n", end(queries::text(queries::SCHEMA_CREATE)));
    for Migration { version, oldest_program, name, up, .. } in MIGRATIONS {
        // The name is our own literal; the time of a migration by hand is not known.
        let record = format!(
            "INSERT INTO mailslot.migration (version, name, oldest_program, migrated_at) \
             VALUES ({version}, '{name}', {oldest_program}, 0)"
        );
        let _ = write!(script, "\n-- Migration {name}\n\n{}\n\n{record};\n", up.trim_end());
    }
    let _ = write!(
        script,
        "\n-- The first partitions; a running store makes those that follow.\n\n{}",
        partition::first()
    );
    script
}

impl PostgresOptions {
    /// As [`schema_sql`], for the schema that these options name.
    pub fn schema_sql(&self) -> String {
        let schema = &self.schema;
        schema_sql()
            .replace("SCHEMA mailslot;", &format!("SCHEMA {schema};"))
            .replace("mailslot.", &format!("{schema}."))
    }
}

fn end(statement: &str) -> &str {
    statement.trim_end().trim_end_matches(';')
}

/// Makes the database ready, or says why it is not ours to use. One that is refused is left as it was.
pub(crate) async fn prepare(options: &PostgresOptions) -> Result<Sessions, StoreError> {
    let (mut db, sessions) = bounded(options, contact(options)).await?;
    // In one transaction: what is inspected is what is migrated, and behind a pooler it stays in one session.
    bounded(options, execute(&mut db, "BEGIN; SET LOCAL jit = off")).await?;
    let statements = Statements::of_schema(&options.schema);
    inspect_and_migrate(&mut db, options, &statements).await?;
    bounded(options, execute(&mut db, "COMMIT")).await?;
    db.close().await.during(OPERATION)?;
    Ok(sessions)
}

/// Gives up a server that does not answer. Only a migration may take as long as it takes.
async fn bounded<T>(
    options: &PostgresOptions,
    step: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(options.call_timeout, step).await;
    answer.map_err(|_| crate::connection::no_answer(OPERATION))?
}

async fn contact(options: &PostgresOptions) -> Result<(PgConnection, Sessions), StoreError> {
    let mut db = options.connect_options(Sessions::Shared).connect().await.during(OPERATION)?;
    let sessions = match options.pooler {
        Pooler::None => Sessions::Own,
        Pooler::Transaction => Sessions::Shared,
        Pooler::Probe => probe(&mut db, options).await?,
    };
    Ok((db, sessions))
}

async fn execute(db: &mut PgConnection, statement: &'static str) -> Result<(), StoreError> {
    db.execute(sqlx::raw_sql(statement)).await.during(OPERATION).map(|_| ())
}

/// How often it is looked for a pooler: one that is busy may once lend a connection the session that it had before, and
/// another one a new session, as a server does.
const PROBES: usize = 3;

/// Whether a pooler lends sessions out. Then a new connection gets a session that is older than itself, or meets the mark
/// that we left in ours, or we do not find our own mark again.
async fn probe(db: &mut PgConnection, options: &PostgresOptions) -> Result<Sessions, StoreError> {
    let statements = Statements::of_schema(&options.schema);
    for _ in 0..PROBES {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let (now, _) =
            in_transaction(db, &statements, queries::SCHEMA_LEAVE_MARK, vec![Param::text(&mark)]).await?;
        let mut other = options.connect_options(Sessions::Shared).connect().await.during(OPERATION)?;
        let (met, began) = in_transaction(&mut other, &statements, queries::SCHEMA_FIND_MARK, vec![]).await?;
        let (kept, _) = in_transaction(db, &statements, queries::SCHEMA_FIND_MARK, vec![]).await?;
        other.close().await.during(OPERATION)?;
        if met == mark || kept != mark || micros(&began) < micros(&now) {
            return Ok(Sessions::Shared);
        }
    }
    Ok(Sessions::Own)
}

fn micros(text: &str) -> i64 {
    text.parse().unwrap_or_default()
}

/// The two texts that a statement gives; one that it does not give is empty.
async fn in_transaction(
    db: &mut PgConnection,
    statements: &Statements,
    query: queries::Query,
    params: Vec<Param<'_>>,
) -> Result<(String, String), StoreError> {
    execute(db, "BEGIN").await?;
    let mut link = SqlxLink { db, persistent: false };
    let mut session = Session { link: &mut link, statements, operation: OPERATION };
    let row = session.row(query, params).await?;
    execute(db, "COMMIT").await?;
    let text = |index| row.str(index).unwrap_or_default().to_owned();
    Ok((text(0), text(1)))
}

async fn inspect_and_migrate(
    db: &mut PgConnection,
    options: &PostgresOptions,
    statements: &Statements,
) -> Result<(), StoreError> {
    let mut found = bounded(options, inspect(db, options, statements)).await?;
    if found < WANTED {
        if !options.migrate {
            return Err(refuse(format!(
                "schema `{}` has version {found} and this program wants {WANTED}; \
                 run `mailslot migrate`, or open it with `migrate(true)`",
                options.schema
            )));
        }
        // Another process may have been faster while this one waited for the lock.
        run(db, statements, queries::SCHEMA_LOCK, vec![]).await?;
        found = inspect(db, options, statements).await?;
        run_migrations(db, &options.schema, statements, found).await?;
        if found == 0 {
            // It was made a moment ago, in this transaction.
            return Ok(());
        }
    }
    // A newer schema is another one than this program can describe; it only has to be one that it can share.
    if found > WANTED {
        return Ok(());
    }
    bounded(options, refuse_drift(db, &options.schema, statements)).await
}

async fn run(
    db: &mut PgConnection,
    statements: &Statements,
    query: queries::Query,
    params: Vec<Param<'_>>,
) -> Result<Vec<crate::link::Row>, StoreError> {
    let mut link = SqlxLink { db, persistent: false };
    Session { link: &mut link, statements, operation: OPERATION }.rows(query, params).await
}

/// The version of the schema, if it is ours or may become ours.
async fn inspect(
    db: &mut PgConnection,
    options: &PostgresOptions,
    statements: &Statements,
) -> Result<u32, StoreError> {
    let rows = run(db, statements, queries::SCHEMA_INSPECT, vec![Param::text(&options.schema)]).await?;
    let flags = rows.first().map(|row| (row.int(1) != 0, row.int(2)));
    let (ours, tables) = flags.unwrap_or_default();
    if !ours && tables > 0 {
        return Err(refuse(format!(
            "schema `{}` holds tables of another program; name another schema in the URL: ?mailslot_schema=name",
            options.schema
        )));
    }
    if !ours {
        return Ok(0);
    }
    let (found, oldest_program) = versions(db, statements).await?;
    if found > WANTED && oldest_program > WANTED {
        return Err(refuse(format!(
            "schema `{}` has version {found}, made by a newer mailslot, which programs from version {oldest_program} on \
             can share; upgrade this program, which knows version {WANTED}",
            options.schema
        )));
    }
    Ok(found)
}

async fn versions(db: &mut PgConnection, statements: &Statements) -> Result<(u32, u32), StoreError> {
    let rows = run(db, statements, queries::SCHEMA_VERSION, vec![]).await?;
    let version = |index| rows.first().map_or(0, |row| u32::try_from(row.int(index)).unwrap_or(u32::MAX));
    Ok((version(0), version(1)))
}

/// The version of a schema that is ours.
pub(crate) async fn version(session: &mut Session<'_>) -> Result<u32, StoreError> {
    let row = session.row(queries::SCHEMA_VERSION, vec![]).await?;
    Ok(u32::try_from(row.int(0)).unwrap_or(u32::MAX))
}

async fn run_migrations(
    db: &mut PgConnection,
    schema: &str,
    statements: &Statements,
    found: u32,
) -> Result<(), StoreError> {
    if found == 0 {
        partition::run(db, schema, format!("CREATE SCHEMA IF NOT EXISTS {schema}"), OPERATION).await?;
        run(db, statements, queries::SCHEMA_CREATE, vec![]).await?;
    }
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        db.execute(sqlx::raw_sql(in_schema(migration.up, schema))).await.during(OPERATION)?;
        let params = vec![
            Param::Int(Some(migration.version.into())),
            Param::text(migration.name),
            Param::Int(Some(migration.oldest_program.into())),
        ];
        run(db, statements, queries::SCHEMA_RECORD, params).await?;
    }
    if found == 0 {
        partition::run(db, schema, partition::first(), OPERATION).await?;
    }
    Ok(())
}

/// Compares the schema with what the migrations write.
async fn refuse_drift(
    db: &mut PgConnection,
    schema: &str,
    statements: &Statements,
) -> Result<(), StoreError> {
    let difference = difference(&describe(db, schema, statements).await?, DESCRIPTION);
    if difference.is_empty() {
        return Ok(());
    }
    Err(refuse(format!(
        "schema `{schema}` was changed by hand; undo that, nothing is altered by itself. \
         What is missing (-) and what should not be there (+):\n{difference}"
    )))
}

/// As [`refuse_drift`], for a schema that is open.
pub(crate) async fn drift(session: &mut Session<'_>, schema: &str) -> Result<Option<String>, StoreError> {
    let rows = session.rows(queries::SCHEMA_OBJECTS, vec![Param::text(schema)]).await?;
    let found: Vec<_> = rows.iter().filter_map(|row| row.str(0).map(str::to_owned)).collect();
    let difference = difference(&found.join("\n"), DESCRIPTION);
    Ok((!difference.is_empty()).then_some(difference))
}

async fn describe(
    db: &mut PgConnection,
    schema: &str,
    statements: &Statements,
) -> Result<String, StoreError> {
    let rows = run(db, statements, queries::SCHEMA_OBJECTS, vec![Param::text(schema)]).await?;
    let lines: Vec<_> = rows.iter().filter_map(|row| row.str(0)).collect();
    Ok(lines.join("\n"))
}

/// Lines that only one of the two has, in order: `-` what is missing, `+` what is too much.
fn difference(found: &str, wanted: &str) -> String {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (found, wanted) = (lines(found), lines(wanted));
    let missing = wanted.difference(&found).map(|line| format!("- {line}"));
    let surplus = found.difference(&wanted).map(|line| format!("+ {line}"));
    missing.chain(surplus).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailslot_testkit::servers;

    #[tokio::test]
    async fn every_migration_goes_down_and_up_again() {
        let options: PostgresOptions = servers::shared().parse().unwrap();
        let options = options.schema(servers::fresh_schema()).unwrap();
        prepare(&options).await.unwrap();
        let (schema, statements) = (&options.schema, Statements::of_schema(&options.schema));
        let mut db = options.connect_options(Sessions::Own).connect().await.unwrap();
        for migration in MIGRATIONS.iter().rev() {
            db.execute(sqlx::raw_sql(in_schema(migration.down, schema))).await.unwrap();
        }
        let left = describe(&mut db, schema, &statements).await.unwrap();
        assert!(left.lines().all(|line| line.contains("migration")), "{left}");
        partition::run(&mut db, schema, "DROP TABLE mailslot.migration".to_owned(), OPERATION).await.unwrap();
        run(&mut db, &statements, queries::SCHEMA_CREATE, vec![]).await.unwrap();
        for migration in MIGRATIONS {
            db.execute(sqlx::raw_sql(in_schema(migration.up, schema))).await.unwrap();
        }
        assert_eq!(difference(&describe(&mut db, schema, &statements).await.unwrap(), DESCRIPTION), "");
    }
}
