//! Fault injection: a store that fails at its n-th call, and a driver that tries every n.
//!
//! A call can fail in two ways, and its caller cannot tell them apart: before its effect, or after it, when only the
//! answer was lost ("commit unknown"). [`for_every_failure`] runs a scenario once for each call that it makes and
//! each way to fail, and checks the store's invariants after each run.

mod plan;
mod scenario;

pub use plan::{FaultPlan, When};
pub use scenario::{Caller, Scenario, scenarios};

use crate::invariant::broken_invariants;
use crate::store::{Fixture, TestStore};
use crate::wrap::Wrapped;
use futures_util::FutureExt as _;
use mailslot_core::StoreError;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A store that fails where its plan says: `ChaosStore::new(store, plan)`.
pub type ChaosStore<S> = Wrapped<S, Arc<FaultPlan>>;

/// What a scenario gives back, so that its store can be checked without faults.
pub trait Inner {
    /// The store inside.
    fn inner(&self) -> &dyn TestStore;
}

impl Inner for Arc<dyn TestStore> {
    fn inner(&self) -> &dyn TestStore {
        &**self
    }
}

impl Inner for Fixture {
    fn inner(&self) -> &dyn TestStore {
        &*self.store
    }
}

/// More calls than a scenario makes: ends one that never comes to an end.
const CALLS_MAX: u64 = 10_000;

/// How often [`insist`] repeats a call: more than a plan fails.
const REPEATS_MAX: usize = 3;

/// Runs a scenario with a failing first call, second call, and so on, until no call is left to fail; for each way to
/// fail. The scenario opens a fresh store, wraps it with the plan, works, checks what it promises, and gives back the
/// store inside, or a [`Fixture`] around it. Returns the number of failures that were tried.
///
/// # Panics
/// The scenario panicked or broke an invariant; the text names the call that failed.
pub async fn for_every_failure<F, Fut>(mut scenario: F) -> u64
where
    F: FnMut(Arc<FaultPlan>) -> Fut,
    Fut: Future<Output: Inner>,
{
    let mut tried = 0;
    for when in [When::BeforeItsEffect, When::AfterItsEffect] {
        for call in 1..=CALLS_MAX {
            let plan = Arc::new(FaultPlan::failing(call, when));
            run_once(&plan, scenario(Arc::clone(&plan))).await;
            if !plan.fired() {
                break;
            }
            tried += 1;
            assert!(call < CALLS_MAX, "the scenario makes more than {CALLS_MAX} calls");
        }
    }
    tried
}

async fn run_once(plan: &FaultPlan, run: impl Future<Output: Inner>) {
    let inner = match AssertUnwindSafe(run).catch_unwind().await {
        Ok(inner) => inner,
        Err(panic) => panic!("{plan}: {}", text_of(&*panic)),
    };
    match broken_invariants(inner.inner()).await {
        Ok(broken) => assert!(broken.is_empty(), "{plan}: {}", broken.join("; ")),
        Err(error) => panic!("{plan}: the store failed in {error}"),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}

/// Repeats a call until it succeeds, as a caller does that must not give up.
///
/// # Panics
/// The error is none that passes, or it does not pass.
pub async fn insist<T, F, Fut>(mut call: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, StoreError>>,
{
    for _ in 0..REPEATS_MAX {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient(), "the store failed for good: {error}"),
        }
    }
    panic!("the call failed {REPEATS_MAX} times in a row");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::message;
    use mailslot_core::store::Filter;
    use mailslot_core::{InboxStore as _, MemoryStore};

    async fn accept_without_key(plan: Arc<FaultPlan>) -> Arc<dyn TestStore> {
        let inner: Arc<dyn TestStore> = Arc::new(MemoryStore::new());
        let store = ChaosStore::new(Arc::clone(&inner), plan);
        insist(|| store.append(vec![message("order").build().into()])).await;
        let stored = crate::store::every_record(&*inner, &Filter::default()).await.unwrap();
        assert_eq!(stored.len(), 1, "messages");
        inner
    }

    #[tokio::test]
    #[should_panic(expected = "call 1 (append) failed after its effect")]
    async fn a_broken_promise_names_the_failed_call() {
        for_every_failure(accept_without_key).await;
    }

    #[tokio::test]
    async fn every_call_fails_once_each_way() {
        let tried = for_every_failure(|plan| async move {
            let inner: Arc<dyn TestStore> = Arc::new(MemoryStore::new());
            let store = ChaosStore::new(Arc::clone(&inner), plan);
            for _ in 0..3 {
                insist(|| store.recover(1)).await;
            }
            inner
        });
        assert_eq!(tried.await, 6);
    }
}
