//! What this store promises beyond the conformance suite.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod open;
mod processes;
mod support;
mod transaction;
