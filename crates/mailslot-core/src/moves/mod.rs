//! How messages move, for stores that keep places in tables: what a transaction decided about each message is gathered
//! here and written set by set, so that a batch of a thousand costs as many statements as one message.

mod gather;
mod slot;

pub use gather::{Moves, OutcomeRow};
pub use slot::Slot;
