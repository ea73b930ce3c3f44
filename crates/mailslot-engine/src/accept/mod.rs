//! Accepting: the request that a caller builds, and the writer that stores many at once.

mod error;
mod pressure;
mod request;
mod writer;

pub use error::{AcceptError, BatchError};
pub use pressure::BackPressure;
pub(crate) use pressure::Pressure;
pub use request::Accept;
pub(crate) use request::{Alone, ContractGate, InTransaction};
pub(crate) use writer::AcceptWriter;
