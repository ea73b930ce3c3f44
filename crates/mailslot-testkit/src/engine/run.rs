//! Runs the suite as one trial for each case.

use super::bench::Bench;
use super::case::Case;
use super::transaction::Transactions;
use crate::store::{Fixture, Opened, in_runtime, left_behind};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use mailslot_core::ManualClock;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// What a constructor gives: a fresh store, and its transactions if it has any.
pub struct Setup {
    pub(super) opened: Opened,
    pub(super) transactions: Option<Arc<dyn Transactions>>,
}

impl Setup {
    /// Adds the cases about transactions of the caller's.
    pub fn transactions(mut self, transactions: impl Transactions) -> Self {
        self.transactions = Some(Arc::new(transactions));
        self
    }
}

impl From<Opened> for Setup {
    fn from(opened: Opened) -> Self {
        Self { opened, transactions: None }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("opened", &self.opened).finish_non_exhaustive()
    }
}

/// Runs every case on fresh stores from `open` and ends the process with the result.
///
/// `open` gives an [`Opened`] store, or a [`Setup`] with more. `backend` names the store in the output. Understands
/// the arguments of `cargo test`, such as a part of a name.
pub fn run<F, Fut>(backend: &str, open: F) -> !
where
    F: Fn(Arc<ManualClock>) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Into<Setup>,
{
    libtest_mimic::run(&Arguments::from_args(), trials(backend, open)).exit()
}

/// The trials that [`run`] runs, to be run together with others.
pub fn trials<F, Fut>(backend: &str, open: F) -> Vec<Trial>
where
    F: Fn(Arc<ManualClock>) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Into<Setup>,
{
    let open = Arc::new(open);
    let trial = |case: Case| {
        let open = Arc::clone(&open);
        let trial = Trial::ignorable_test(case.name(), move || in_runtime(run_case(case, &*open)));
        trial.with_kind(backend)
    };
    super::cases().into_iter().map(trial).collect()
}

async fn run_case<F, Fut>(case: Case, open: &F) -> Result<Completion, Failed>
where
    F: Fn(Arc<ManualClock>) -> Fut,
    Fut: Future,
    Fut::Output: Into<Setup>,
{
    let clock = Arc::new(ManualClock::default());
    let setup = open(Arc::clone(&clock)).await.into();
    if let Some(missing) = case.need.missing(&setup) {
        return Ok(Completion::ignored_with(missing));
    }
    let bench = Bench::new(Fixture::new(setup.opened, clock), setup.transactions);
    (case.body)(&bench).await;
    left_behind(&bench).await
}
