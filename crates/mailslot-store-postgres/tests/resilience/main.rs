//! What the store and the loops on it do when their server is away, stalled, full, read-only or short of connections:
//! each test breaks a server of its own under an inbox that accepts and works, and then lets it go on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod away;
mod connections;
mod disk_full;
mod listener;
mod log;
mod plan;
mod proxy;
mod race;
mod read_only;
mod rig;
mod stall;
