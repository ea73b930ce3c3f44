//! Puts load on an inbox and measures what it does.
//!
//! The benchmark compares ours with raw references, `mailslot bench` looks at a user's own database: both use the loads
//! of this crate, so that their figures mean the same. What is put under load is a [`Contender`]; [`OurInbox`] is the one
//! that is an inbox.

#![warn(missing_docs)]

mod accept;
mod both;
mod contender;
mod counted;
mod drain;
mod inbox;
mod latencies;
mod latency;
mod message;
mod meter;
mod probe;
mod running;

pub use accept::{Load, accept};
pub use both::both;
pub use contender::{Contender, Worker};
pub use counted::Counted;
pub use drain::{drain, execute, fill};
pub use inbox::{OurInbox, Settings};
pub use latencies::{Latencies, Spread, latencies, record};
pub use latency::latency;
pub use message::{Work, now_ns};
pub use meter::{Meter, Reading, Sample, ServerGauge, ServerReading, Span, cpu_time, float};
pub use probe::Probe;
