//! Transactions.
/// What.
pub trait Transactions: Send + Sync + 'static {}
