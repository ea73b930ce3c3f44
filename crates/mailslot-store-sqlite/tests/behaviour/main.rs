//! What this store promises beyond the conformance suite.

mod damage;
mod open;
mod processes;
mod support;
mod transaction;
