//! Runs the suite as one trial for each case.

use super::case::Case;
use super::fixture::{Fixture, Opened};
use crate::chaos::{self, Caller, Scenario};
use crate::invariant::broken_invariants;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use mailslot_core::ManualClock;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long one case may take on a busy machine before it counts as hung.
const CASE_TIME_MAX: Duration = Duration::from_secs(120);

/// Runs every case on fresh stores from `open` and ends the process with the result.
///
/// `backend` names the store in the output. Understands the arguments of `cargo test`, such as a part of a name.
pub fn run<F, Fut>(backend: &str, open: F) -> !
where
    F: Fn(Arc<ManualClock>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Opened> + Send + 'static,
{
    libtest_mimic::run(&Arguments::from_args(), trials(backend, open)).exit()
}

/// The trials that [`run`] runs, to be run together with others.
pub fn trials<F, Fut>(backend: &str, open: F) -> Vec<Trial>
where
    F: Fn(Arc<ManualClock>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Opened> + Send + 'static,
{
    let open = Arc::new(open);
    let trial = |case: Case| {
        let open = Arc::clone(&open);
        let trial = Trial::ignorable_test(case.name(), move || in_runtime(run_case(case, &*open)));
        trial.with_kind(backend)
    };
    let cases = super::cases().into_iter().map(trial);
    let scenario = |scenario: Scenario| {
        let (name, open) = (format!("chaos::{}", scenario.name), Arc::clone(&open));
        Trial::test(name, move || in_runtime(run_scenario(scenario, &*open))).with_kind(backend)
    };
    cases.chain(chaos::scenarios().into_iter().map(scenario)).collect()
}

pub(crate) fn in_runtime<T>(work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    // Two workers, so that cases about concurrency are concurrent.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match tokio::time::timeout(CASE_TIME_MAX, work).await {
            Ok(result) => result,
            Err(_) => Err(format!("did not end within {CASE_TIME_MAX:?}").into()),
        }
    })
}

async fn run_case<F, Fut>(case: Case, open: &F) -> Result<Completion, Failed>
where
    F: Fn(Arc<ManualClock>) -> Fut,
    Fut: Future<Output = Opened>,
{
    let clock = Arc::new(ManualClock::default());
    let opened = open(Arc::clone(&clock)).await;
    if let Some(missing) = case.need.missing(&opened) {
        return Ok(Completion::ignored_with(missing));
    }
    let mut fixture = Fixture::new(opened, clock);
    (case.body)(&mut fixture).await;
    left_behind(&fixture).await
}

/// The result of a case that came to its end: it must leave the store's invariants whole.
pub(crate) async fn left_behind(fixture: &Fixture) -> Result<Completion, Failed> {
    let broken = broken_invariants(&*fixture.store).await?;
    if broken.is_empty() {
        return Ok(Completion::Completed);
    }
    Err(format!("the case passed, but left behind:\n{}", broken.join("\n")).into())
}

/// Runs a scenario once for each way in which one of its calls can fail, each time on a fresh store.
async fn run_scenario<F, Fut>(scenario: Scenario, open: &F) -> Result<(), Failed>
where
    F: Fn(Arc<ManualClock>) -> Fut,
    Fut: Future<Output = Opened>,
{
    let tried = chaos::for_every_failure(|plan| async move {
        let clock = Arc::new(ManualClock::default());
        let caller = Caller::new(Fixture::new(open(Arc::clone(&clock)).await, clock), plan);
        (scenario.body)(&caller).await;
        caller.fixture
    });
    if tried.await > 0 { Ok(()) } else { Err("the scenario makes no call that could fail".into()) }
}
