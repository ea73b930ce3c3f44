//! How statements reach a server: the few kinds of parameters that they take and the cells that come back, so that the
//! same code runs on every driver in whose transactions an application may want to accept.

use crate::queries::{Query, Statements};
use async_trait::async_trait;
use mailslot_core::StoreError;
use mailslot_core::stored::Columns;
use std::borrow::Cow;
use uuid::Uuid;

/// A parameter of a statement. The PostgreSQL type is in its description.
#[derive(Debug, Clone)]
pub(crate) enum Param<'p> {
    /// `bigint`.
    Int(Option<i64>),
    /// `boolean`.
    Bool(bool),
    /// `text`.
    Text(Option<Cow<'p, str>>),
    /// `uuid`.
    Uuid(Uuid),
    /// `bigint[]`.
    Ints(Vec<Option<i64>>),
    /// `text[]`, or NULL for the whole array.
    Texts(Option<Vec<Option<Cow<'p, str>>>>),
    /// `bytea[]`.
    Blobs(Vec<Cow<'p, [u8]>>),
    /// `uuid[]`, or NULL for the whole array.
    Uuids(Option<Vec<Uuid>>),
}

impl<'p> Param<'p> {
    pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> Self {
        Self::Ints(values.into_iter().map(Some).collect())
    }

    pub(crate) fn texts(values: impl IntoIterator<Item = &'p str>) -> Self {
        Self::Texts(Some(values.into_iter().map(|text| Some(Cow::Borrowed(text))).collect()))
    }

    pub(crate) fn text(value: &'p str) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }

    pub(crate) fn optional_text(value: Option<&'p str>) -> Self {
        Self::Text(value.map(Cow::Borrowed))
    }
}

/// A value of a row: the binary form of the protocol, where integers and booleans are already numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// NULL.
    Null,
    /// `bigint`, `integer`, `smallint` or `boolean`.
    Int(i64),
    /// `text`, `bytea` or `uuid`.
    Bytes(Vec<u8>),
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Columns for Row {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        match self.0.get(index) {
            Some(Cell::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    fn integer(&self, index: usize) -> Option<i64> {
        match self.0.get(index) {
            Some(Cell::Int(value)) => Some(*value),
            _ => None,
        }
    }
}

impl Row {
    /// An integer that the statement always gives.
    pub(crate) fn int(&self, index: usize) -> i64 {
        self.integer(index).unwrap_or_default()
    }

    /// The elements of a JSON or text cell's text.
    pub(crate) fn str(&self, index: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(index)?).ok()
    }
}

/// A connection of some driver, in a transaction.
#[async_trait]
pub(crate) trait Link: Send {
    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// The server refused it, or the connection broke; mapped as the store maps errors.
    async fn rows(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError>;

    /// Runs a statement and returns how many rows it changed.
    ///
    /// # Errors
    /// As [`Link::rows`].
    async fn execute(
        &mut self,
        operation: &'static str,
        sql: &sqlx::SqlStr,
        params: Vec<Param<'_>>,
    ) -> Result<u64, StoreError>;
}

/// A connection with the statements of the store's schema.
pub(crate) struct Session<'s> {
    pub(crate) link: &'s mut dyn Link,
    pub(crate) statements: &'s Statements,
    pub(crate) operation: &'static str,
}

impl Session<'_> {
    pub(crate) async fn rows(
        &mut self,
        query: Query,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        self.link.rows(self.operation, self.statements.get(query), params).await
    }

    /// The only row of a statement that always gives one.
    pub(crate) async fn row(&mut self, query: Query, params: Vec<Param<'_>>) -> Result<Row, StoreError> {
        let row = self.rows(query, params).await?.into_iter().next();
        Ok(row.unwrap_or(Row(Vec::new())))
    }

    pub(crate) async fn execute(&mut self, query: Query, params: Vec<Param<'_>>) -> Result<u64, StoreError> {
        self.link.execute(self.operation, self.statements.get(query), params).await
    }
}
