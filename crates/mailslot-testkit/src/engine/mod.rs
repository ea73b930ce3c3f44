//! The engine suite: what accepting and working do over any store, as named cases.
//!
//! A backend's `tests/engine.rs`, declared with `harness = false`, gives the constructor of its conformance suite:
//!
//! ```no_run
//! use mailslot_core::MemoryStore;
//! use mailslot_testkit::engine;
//! use mailslot_testkit::store::Opened;
//!
//! fn main() {
//!     engine::run("memory", |clock| async move { Opened::new(MemoryStore::with_clock(clock)) })
//! }
//! ```
//!
//! A store that appends and settles in the caller's transactions gives a [`Setup`] with its [`Transactions`], and gets
//! the cases about them.
//!
//! Each case is a trial of its own over a fresh store and a runtime of its own. The store's clock stands still until a
//! case moves it; the engine's own timers are real and fire often, and a case awaits what they bring about. After each
//! case the runner checks [every invariant](crate::invariant::broken_invariants) of the store.

#[macro_use]
mod case;
mod bench;
mod busy;
mod journal;
mod run;
mod script;
mod tap;

mod accept;
mod break_down;
mod cancel;
mod coalesce;
mod control;
mod fault;
mod handle;
mod hook;
mod key_policy;
mod layer;
mod lease;
mod redrive;
mod retention;
mod retry;
mod session;
mod shutdown;
mod subscriber;
mod transaction;
mod unknown;

pub use case::Case;
pub use run::{Setup, run, trials};
pub use script::Order;
pub use subscriber::crash_points_markdown;
pub use tap::TapStore;
pub use transaction::{Body, Transactions};

/// Every case of the suite.
pub fn cases() -> Vec<Case> {
    [
        accept::cases(),
        break_down::cases(),
        cancel::cases(),
        coalesce::cases(),
        control::cases(),
        fault::cases(),
        handle::cases(),
        hook::cases(),
        key_policy::cases(),
        layer::cases(),
        lease::cases(),
        redrive::cases(),
        retention::cases(),
        retry::cases(),
        session::cases(),
        shutdown::cases(),
        unknown::cases(),
        transaction::cases(),
    ]
    .into_iter()
    .chain(subscriber::cases())
    .flatten()
    .collect()
}
