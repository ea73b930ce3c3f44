//! How messages move, for stores that keep places in tables: what a transaction decided about each message is gathered
//! here and written set by set, so that a batch of a thousand costs as many statements as one message.

mod claim;
mod conclude;
mod gather;
mod operate;
mod places;
mod settle;
mod slot;
#[cfg(test)]
mod tests;

pub use claim::{Due, DueWindow, Window};
pub use conclude::{Conclusions, Placed, identities};
pub use gather::{Moves, OutcomeRow};
pub use places::{Numbered, Places, Sessions};
pub use settle::{Held, Member};
pub use slot::Slot;
