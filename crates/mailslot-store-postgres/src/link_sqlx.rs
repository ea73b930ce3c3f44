//! Statements on a connection of sqlx.

use crate::error::During;
use crate::link::{Cell, Link, Param, Row};
use async_trait::async_trait;
use mailslot_core::{StoreError, StoreErrorKind};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{Postgres, Row as _, TypeInfo as _, ValueRef as _};
use std::borrow::Cow;

/// A connection of sqlx. `persistent`: whether statements keep their name on it.
pub(crate) struct SqlxLink<'c> {
    pub(crate) db: &'c mut PgConnection,
    pub(crate) persistent: bool,
}

type Statement<'p> = sqlx::query::Query<'p, Postgres, PgArguments>;

fn bind<'p>(sql: &sqlx::SqlStr, params: Vec<Param<'_>>, persistent: bool) -> Statement<'p> {
    let mut statement = sqlx::query(sql.clone()).persistent(persistent);
    for param in params {
        statement = match param {
            Param::Int(value) => statement.bind(value),
            Param::Bool(value) => statement.bind(value),
            Param::Text(value) => statement.bind(value.map(Cow::into_owned)),
            Param::Uuid(value) => statement.bind(value),
            Param::Ints(values) => statement.bind(values),
            Param::Texts(values) => statement.bind(values.map(owned_texts)),
            Param::Blobs(values) => {
                statement.bind(values.into_iter().map(Cow::into_owned).collect::<Vec<_>>())
            }
            Param::Uuids(values) => statement.bind(values),
        };
    }
    statement
}

fn owned_texts(texts: Vec<Option<Cow<'_, str>>>) -> Vec<Option<String>> {
    texts.into_iter().map(|text| text.map(Cow::into_owned)).collect()
}

#[async_trait]
impl Link for SqlxLink<'_> {
    async fn rows(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = bind(sql, params, self.persistent);
        let rows = statement.fetch_all(&mut *self.db).await.during(operation)?;
        rows.iter().map(|row| read(operation, row)).collect()
    }

    async fn execute(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<u64, StoreError> {
        let statement = bind(sql, params, self.persistent);
        Ok(statement.execute(&mut *self.db).await.during(operation)?.rows_affected())
    }
}

pub(crate) fn read(operation: &'static str, row: &PgRow) -> Result<Row, StoreError> {
    (0..row.len()).map(|index| cell(operation, row, index)).collect::<Result<_, _>>().map(Row)
}

fn cell(operation: &'static str, row: &PgRow, index: usize) -> Result<Cell, StoreError> {
    let value = row.try_get_raw(index).during(operation)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let kind = value.type_info().name().to_owned();
    let bytes = value.as_bytes().map_err(|error| StoreError::unexpected(operation, error))?;
    let number = || i64_of(bytes).map(Cell::Int);
    let cell = match kind.as_str() {
        "INT8" | "INT4" | "INT2" | "BOOL" => number(),
        "TEXT" | "BYTEA" | "UUID" | "VARCHAR" | "NAME" => Some(Cell::Bytes(bytes.to_vec())),
        _ => None,
    };
    cell.ok_or_else(|| {
        StoreError::new(StoreErrorKind::Unexpected, operation, format!("a column came back as {kind}"))
    })
}

/// A number of the binary protocol, of any width.
pub(crate) fn i64_of(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a] => Some(i64::from(a)),
        [a, b] => Some(i64::from(i16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => bytes.try_into().ok().map(i64::from_be_bytes),
    }
}

/// A row of sqlx, read in place.
pub(crate) struct PgColumns<'r>(pub(crate) &'r PgRow);

impl mailslot_core::stored::Columns for PgColumns<'_> {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        let value = self.0.try_get_raw(index).ok()?;
        if value.is_null() { None } else { value.as_bytes().ok() }
    }

    fn integer(&self, index: usize) -> Option<i64> {
        self.bytes(index).and_then(i64_of)
    }
}
