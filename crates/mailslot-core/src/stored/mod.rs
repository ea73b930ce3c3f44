//! How stores keep values, for stores: reading a row, and the numbers that stand for words and times.
//!
//! Stores differ in their tables and statements; what a column means is the same everywhere and is written here once.
//! A stored value that cannot be what it should be is replaced by something that can be shown, and the defect is kept:
//! a claim refuses such a row, `get` reports it, `query` shows what is left of it.

mod code;
mod lanes;
mod read;
mod record;
#[cfg(test)]
mod tests;
mod time;
mod view;

pub use code::{UNTIL_FINISHED, UNTIL_STARTED, code_of_kind, code_of_policy, kind_of_code};
pub use lanes::{LaneCache, LaneKey};
pub use read::{Columns, Read, RowReader, id_of_place};
pub use time::{earlier, instant, later, micros, waiting_since};
pub use view::details;
