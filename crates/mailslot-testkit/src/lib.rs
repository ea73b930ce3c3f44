//! What a store must prove, for everyone who writes one.
//!
//! - [`store`]: the conformance suite. A backend's `tests/conformance.rs` gives a constructor and gets every case.
//! - [`broker`]: the same for brokers.
//! - [`model`]: random operations on a store and on the memory store, compared answer by answer.
//! - [`chaos`]: a store that fails where it is told to, and a driver that tries every place.
//! - [`engine`]: the engine's suite, over any store.
//! - [`recording`]: a store that counts its calls.
//! - [`invariant`]: what must hold of a store's content at any time.
//! - [`message`]: builders for the messages of tests.
//! - [`servers`]: real database servers, shared ones and ones of a test's own.
//!
//! Nothing here sleeps: time is a [`ManualClock`](mailslot_core::ManualClock) that the cases move.

pub mod broker;
pub mod chaos;
pub mod engine;
pub mod invariant;
pub mod message;
pub mod model;
pub mod recording;
pub mod servers;
pub mod store;
pub mod wrap;
