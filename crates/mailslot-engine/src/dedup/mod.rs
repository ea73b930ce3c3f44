//! Recognising redeliveries: a layer around a service that handles deliveries, and the task that lets old records go.
//!
//! Opt-in: what has no such layer asks no store, and nothing cleans up for it.

mod cleanup;
mod layer;
#[cfg(test)]
mod tests;

pub use cleanup::Cleanup;
pub use layer::{Dedup, DedupCounts, DedupError, DedupService};
