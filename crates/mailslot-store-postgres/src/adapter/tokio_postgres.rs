//! tokio-postgres, and the pools that lend its clients.

use super::append;
use super::cell::cell;
use crate::error::of_code;
use crate::link::{Cell, Link, Param, Row};
use crate::store::PostgresStore;
use async_trait::async_trait;
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{AppendIn, StoreError, StoreErrorKind};
use std::error::Error as StdError;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Error, GenericClient, Transaction};

#[async_trait]
impl<'t> AppendIn<Transaction<'t>> for PostgresStore {
    async fn append_in(
        &self,
        transaction: &mut Transaction<'t>,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        append::append_in(self, &mut TokioPostgresLink(&*transaction), groups).await
    }
}

/// For those who begin and end their transactions by hand.
#[async_trait]
impl AppendIn<Client> for PostgresStore {
    async fn append_in(
        &self,
        client: &mut Client,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        append::append_in(self, &mut TokioPostgresLink(&*client), groups).await
    }
}

struct TokioPostgresLink<'c, C>(&'c C);

/// Statements are sent with the types of their parameters and without a name: one round trip each, and nothing is left in
/// a session that a pooler lends to others.
#[async_trait]
impl<C: GenericClient + Sync> Link for TokioPostgresLink<'_, C> {
    async fn rows(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let typed: Vec<_> = params.iter().map(typed).collect();
        let rows = self.0.query_typed(sql.as_str(), &typed).await;
        let rows = rows.map_err(|error| store_error(operation, error))?;
        rows.iter().map(|row| read(operation, row)).collect()
    }

    async fn execute(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<u64, StoreError> {
        let typed: Vec<_> = params.iter().map(typed).collect();
        let executed = self.0.execute_typed(sql.as_str(), &typed).await;
        executed.map_err(|error| store_error(operation, error))
    }
}

fn typed<'p>(param: &'p Param<'_>) -> (&'p (dyn ToSql + Sync), Type) {
    match param {
        Param::Int(value) => (value, Type::INT8),
        Param::Bool(value) => (value, Type::BOOL),
        Param::Text(value) => (value, Type::TEXT),
        Param::Uuid(value) => (value, Type::UUID),
        Param::Ints(values) => (values, Type::INT8_ARRAY),
        Param::Texts(values) => (values, Type::TEXT_ARRAY),
        Param::Blobs(values) => (values, Type::BYTEA_ARRAY),
        Param::Uuids(values) => (values, Type::UUID_ARRAY),
    }
}

fn read(operation: &'static str, row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let cells = (0..row.len()).map(|index| row.try_get(index).map(|Raw(cell)| cell));
    cells.collect::<Result<_, _>>().map(Row).map_err(|error| StoreError::unexpected(operation, error))
}

/// A value as it came.
struct Raw(Cell);

impl<'r> FromSql<'r> for Raw {
    fn from_sql(kind: &Type, bytes: &'r [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        cell(kind.oid(), bytes).map(Self).ok_or_else(|| format!("a column came back as {kind}").into())
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Cell::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn store_error(operation: &'static str, error: Error) -> StoreError {
    let broke = error.is_closed() || error.source().is_some_and(<dyn StdError>::is::<std::io::Error>);
    let (kind, detail) = match error.code() {
        Some(code) => of_code(code.code()),
        None if broke => (StoreErrorKind::Unavailable, "the connection to PostgreSQL broke or was refused"),
        None => return StoreError::unexpected(operation, error),
    };
    StoreError::new(kind, operation, detail).because(error)
}
