//! Rows as the core reads them, and parameters as the statements take them.

use mailslot_core::stored::Columns;
use serde::{Serialize, Serializer as _};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

/// A row. Values are read without a look at the declared type: SQLite stores what it is given.
pub(crate) struct Row<'r>(pub(crate) &'r SqliteRow);

impl Columns for Row<'_> {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        self.0.try_get_unchecked(index).ok().flatten()
    }

    fn integer(&self, index: usize) -> Option<i64> {
        self.0.try_get_unchecked(index).ok().flatten()
    }
}

/// A JSON array as the parameter of a statement.
pub(crate) fn json<T: Serialize>(values: impl IntoIterator<Item = T>) -> String {
    let mut json = Vec::new();
    let written = serde_json::Serializer::new(&mut json).collect_seq(values);
    written.expect("numbers and texts always have a JSON form");
    String::from_utf8(json).expect("JSON is text")
}
