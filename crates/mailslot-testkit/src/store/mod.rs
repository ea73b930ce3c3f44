//! The conformance suite for stores: every behaviour of the store traits as a named case.
//!
//! A backend's `tests/conformance.rs`, declared with `harness = false`, gives only a constructor:
//!
//! ```no_run
//! use mailslot_core::MemoryStore;
//! use mailslot_testkit::store::{self, Opened};
//!
//! fn main() {
//!     store::run("memory", |clock| async move { Opened::new(MemoryStore::with_clock(clock)) })
//! }
//! ```
//!
//! Each case is a trial of its own over a fresh store, all in parallel, none retried. After each one the runner
//! checks [every invariant](crate::invariant::broken_invariants). What a store says it cannot do is reported as
//! ignored, with the reason. A new case: an async function in the file of its noun, listed in that file's `cases!`.

#[macro_use]
mod case;
mod claim;
mod fixture;
mod placed;
mod run;
mod verbs;

mod append;
mod cancel;
mod check;
mod clock;
mod counts;
mod dedup;
mod delivery;
mod durable;
mod exhaust;
mod expiry;
mod extend;
mod handoff;
mod hostile;
mod key_policy;
mod lease;
mod lease_order;
mod priority;
mod purge;
mod query;
mod redrive;
mod requeue;
mod retention;
mod round_trip;
mod session;
mod session_block;
mod settle;
mod settle_fence;
mod signal;
mod state;
mod suspect;

pub use case::{Case, Need};
pub use claim::{Claim, claim};
pub use fixture::{Fixture, Opened, TestStore};
pub use placed::Placed;
pub(crate) use run::{in_runtime, left_behind};
pub use run::{run, trials};
pub use verbs::{ATTEMPTS, LEASE, every_record, ids};

/// Every case of the suite.
pub fn cases() -> Vec<Case> {
    [
        append::cases(),
        cancel::cases(),
        check::cases(),
        clock::cases(),
        counts::cases(),
        dedup::cases(),
        delivery::cases(),
        durable::cases(),
        exhaust::cases(),
        expiry::cases(),
        extend::cases(),
        handoff::cases(),
        hostile::cases(),
        key_policy::cases(),
        lease::cases(),
        lease_order::cases(),
        priority::cases(),
        purge::cases(),
        query::cases(),
        redrive::cases(),
        requeue::cases(),
        retention::cases(),
        round_trip::cases(),
        session::cases(),
        session_block::cases(),
        settle::cases(),
        settle_fence::cases(),
        signal::cases(),
        state::cases(),
        suspect::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
