//! Diesel, by diesel-async.

use super::append;
use super::cell::cell;
use crate::error::of_code;
use crate::link::{Cell, Link, Param, Row};
use crate::store::PostgresStore;
use async_trait::async_trait;
use diesel::deserialize::{self, QueryableByName};
use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::result::{DatabaseErrorKind, Error};
use diesel::row::{Field as _, NamedRow};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Nullable, Text, Uuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{AppendIn, StoreError, StoreErrorKind};

#[async_trait]
impl AppendIn<AsyncPgConnection> for PostgresStore {
    async fn append_in(
        &self,
        connection: &mut AsyncPgConnection,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        append::append_in(self, &mut DieselLink(connection), groups).await
    }
}

struct DieselLink<'c>(&'c mut AsyncPgConnection);

#[async_trait]
impl Link for DieselLink<'_> {
    async fn rows(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let rows: Result<Vec<RawRow>, _> = bind(sql, params).load(self.0).await;
        let rows = rows.map_err(|error| store_error(operation, sql, error))?;
        Ok(rows.into_iter().map(|RawRow(row)| row).collect())
    }

    async fn execute(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<u64, StoreError> {
        let executed = if params.is_empty() {
            // One round trip instead of two; these are savepoints, which change no rows.
            self.0.batch_execute(sql.as_str()).await.map(|()| 0)
        } else {
            bind(sql, params).execute(self.0).await
        };
        executed.map(|rows| rows as u64).map_err(|error| store_error(operation, sql, error))
    }
}

type Query<'p> = BoxedSqlQuery<'p, Pg, SqlQuery>;

fn bind<'p>(sql: &sqlx::SqlStr, params: Vec<Param<'p>>) -> Query<'p> {
    let query = diesel::sql_query(sql.as_str()).into_boxed();
    params.into_iter().fold(query, |query, param| match param {
        Param::Int(value) => query.bind::<Nullable<BigInt>, _>(value),
        Param::Bool(value) => query.bind::<Bool, _>(value),
        Param::Text(value) => query.bind::<Nullable<Text>, _>(value),
        Param::Uuid(value) => query.bind::<Uuid, _>(value),
        Param::Ints(values) => query.bind::<Array<Nullable<BigInt>>, _>(values),
        Param::Texts(values) => query.bind::<Nullable<Array<Nullable<Text>>>, _>(values),
        Param::Blobs(values) => query.bind::<Array<Binary>, _>(values),
        Param::Uuids(values) => query.bind::<Nullable<Array<Uuid>>, _>(values),
    })
}

/// A row of any statement.
struct RawRow(Row);

impl QueryableByName<Pg> for RawRow {
    fn build<'r>(row: &impl NamedRow<'r, Pg>) -> deserialize::Result<Self> {
        let cells = (0..row.field_count()).map(|index| read(row, index));
        cells.collect::<deserialize::Result<_>>().map(|cells| Self(Row(cells)))
    }
}

/// By its place: some columns of ours have no name of their own.
fn read<'r>(row: &impl NamedRow<'r, Pg>, index: usize) -> deserialize::Result<Cell> {
    let field = diesel::row::Row::get(row, index).ok_or("a column is missing")?;
    let Some(value) = field.value() else { return Ok(Cell::Null) };
    let oid = value.get_oid().get();
    cell(oid, value.as_bytes()).ok_or_else(|| format!("a column came back as type {oid}").into())
}

fn store_error(operation: &'static str, sql: &sqlx::SqlStr, error: Error) -> StoreError {
    let (kind, detail) = match &error {
        Error::DatabaseError(DatabaseErrorKind::Unknown, _) if sql.as_str() == append::SET_SAVEPOINT => (
            StoreErrorKind::Invalid,
            "the connection is in no transaction, or in one that has failed already; begin one first",
        ),
        Error::DatabaseError(kind, information) => match code(*kind, information.message()) {
            Some(code) => of_code(code),
            None => return StoreError::unexpected(operation, error),
        },
        Error::BrokenTransactionManager => of_code("25P02"),
        _ => return StoreError::unexpected(operation, error),
    };
    StoreError::new(kind, operation, detail).because(error)
}

/// The server's error code, which Diesel keeps to itself: by its own kinds, and where it has none by the beginning of the
/// message, which a server may give in another language. Then it is something unforeseen, with the message as its cause.
fn code(kind: DatabaseErrorKind, message: &str) -> Option<&'static str> {
    match kind {
        DatabaseErrorKind::UniqueViolation => Some("23505"),
        DatabaseErrorKind::CheckViolation => Some("23514"),
        DatabaseErrorKind::SerializationFailure => Some("40001"),
        DatabaseErrorKind::ReadOnlyTransaction => Some("25006"),
        DatabaseErrorKind::UnableToSendCommand | DatabaseErrorKind::ClosedConnection => Some("08006"),
        _ => MESSAGES.iter().find(|(start, _)| message.starts_with(start)).map(|(_, code)| *code),
    }
}

const MESSAGES: &[(&str, &str)] = &[
    ("relation \"", "42P01"),
    ("schema \"", "3F000"),
    ("permission denied for ", "42501"),
    ("deadlock detected", "40P01"),
    ("canceling statement due to lock timeout", "55P03"),
    ("canceling statement due to statement timeout", "57014"),
    ("terminating connection due to ", "57P01"),
    ("could not extend file ", "53100"),
];
