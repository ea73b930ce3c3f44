//! SeaORM.

use super::append;
use crate::error::of_sqlx;
use crate::link::{Link, Param, Row};
use crate::link_sqlx;
use crate::store::PostgresStore;
use async_trait::async_trait;
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{AppendIn, StoreError, StoreErrorKind};
use sea_orm::sea_query::ArrayType;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, RuntimeErr, Statement, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

#[async_trait]
impl AppendIn<DatabaseTransaction> for PostgresStore {
    async fn append_in(
        &self,
        transaction: &mut DatabaseTransaction,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        append_in(self, transaction, groups).await
    }
}

/// For the closures of `TransactionTrait::transaction`, which are given a reference: `accept_in(&mut &*transaction, …)`.
#[async_trait]
impl<'t> AppendIn<&'t DatabaseTransaction> for PostgresStore {
    async fn append_in(
        &self,
        transaction: &mut &'t DatabaseTransaction,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        append_in(self, transaction, groups).await
    }
}

async fn append_in(
    store: &PostgresStore,
    transaction: &DatabaseTransaction,
    groups: Vec<AppendGroup>,
) -> Result<Vec<Vec<Appended>>, StoreError> {
    if transaction.get_database_backend() != DbBackend::Postgres {
        let detail = "the transaction is one of another kind of database than PostgreSQL";
        return Err(StoreError::new(StoreErrorKind::Invalid, append::OPERATION, detail));
    }
    append::append_in(store, &mut SeaOrmLink(transaction), groups).await
}

struct SeaOrmLink<'t>(&'t DatabaseTransaction);

#[async_trait]
impl Link for SeaOrmLink<'_> {
    async fn rows(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.0.query_all_raw(statement(sql, params)).await;
        let rows = rows.map_err(|error| store_error(operation, error))?;
        let row_of_sqlx = rows.iter().filter_map(|row| row.try_as_pg_row());
        row_of_sqlx.map(|row| link_sqlx::read(operation, row)).collect()
    }

    async fn execute(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<u64, StoreError> {
        let executed = if params.is_empty() {
            self.0.execute_unprepared(sql.as_str()).await
        } else {
            self.0.execute_raw(statement(sql, params)).await
        };
        executed.map(|executed| executed.rows_affected()).map_err(|error| store_error(operation, error))
    }
}

/// The remark makes it another statement than sqlx's own, which binds other types: on a connection that both use, the
/// first to come would fix the types for both.
fn statement(sql: &sqlx::SqlStr, params: Vec<Param<'_>>) -> Statement {
    let sql = format!("{} -- by SeaORM", sql.as_str().trim_end());
    Statement::from_sql_and_values(DbBackend::Postgres, sql, params.into_iter().map(value))
}

fn value(param: Param<'_>) -> Value {
    match param {
        Param::Int(value) => Value::BigInt(value),
        Param::Bool(value) => Value::Bool(Some(value)),
        Param::Text(value) => Value::String(value.map(Cow::into_owned)),
        Param::Uuid(value) => Value::Uuid(Some(value)),
        Param::Ints(values) => Value::String(Some(literal(values))),
        Param::Texts(values) => Value::String(values.map(|values| text_literal(&values))),
        Param::Blobs(values) => {
            array(ArrayType::Bytes, values.into_iter().map(|value| Value::Bytes(Some(value.into_owned()))))
        }
        Param::Uuids(values) => match values {
            Some(values) => array(ArrayType::Uuid, values.into_iter().map(|value| Value::Uuid(Some(value)))),
            None => Value::Array(ArrayType::Uuid, None),
        },
    }
}

fn array(kind: ArrayType, values: impl Iterator<Item = Value>) -> Value {
    Value::Array(kind, Some(Box::new(values.collect())))
}

/// An array as text, for the statements' casts (`$1::bigint[]`): SeaORM's own arrays cannot hold a NULL.
fn literal(values: Vec<Option<i64>>) -> String {
    let values = values.into_iter().map(|value| value.map_or("NULL".to_owned(), |value| value.to_string()));
    format!("{{{}}}", values.collect::<Vec<_>>().join(","))
}

/// The same for texts; see "Array Input and Output Syntax" in the manual of PostgreSQL.
fn text_literal(values: &[Option<Cow<'_, str>>]) -> String {
    let mut literal = String::from("{");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            literal.push(',');
        }
        match value {
            Some(text) => quote(&mut literal, text),
            None => literal.push_str("NULL"),
        }
    }
    literal.push('}');
    literal
}

fn quote(literal: &mut String, text: &str) {
    literal.push('"');
    for part in text.split_inclusive(['"', '\\']) {
        match part.chars().next_back() {
            Some(special @ ('"' | '\\')) => {
                let _ = write!(literal, "{}\\{special}", &part[..part.len() - 1]);
            }
            _ => literal.push_str(part),
        }
    }
    literal.push('"');
}

fn store_error(operation: &'static str, error: DbErr) -> StoreError {
    let of_driver = match &error {
        DbErr::Conn(cause) | DbErr::Exec(cause) | DbErr::Query(cause) => match cause {
            RuntimeErr::SqlxError(error) => of_sqlx(error),
            RuntimeErr::Internal(_) => None,
        },
        _ => None,
    };
    match of_driver {
        Some((kind, detail)) => StoreError::new(kind, operation, detail).because(error),
        None => StoreError::unexpected(operation, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_written_as_postgres_reads_them() {
        let check = |values: &[Option<&str>], expected| {
            let values: Vec<_> = values.iter().map(|value| value.map(Cow::Borrowed)).collect();
            assert_eq!(text_literal(&values), expected);
        };
        check(&[], "{}");
        check(&[Some("a"), None, Some("")], r#"{"a",NULL,""}"#);
        check(&[Some("NULL"), Some(r#"a "b" \ {c,d}"#)], r#"{"NULL","a \"b\" \\ {c,d}"}"#);
        check(&[Some("\\\""), Some("é\"")], r#"{"\\\"","é\""}"#);
        assert_eq!(literal(vec![Some(-1), None, Some(i64::MAX)]), "{-1,NULL,9223372036854775807}");
    }
}
