//! The model test: the same random operations on a store and on the memory store, compared answer by answer.
//!
//! Both read one clock that only the operations move, so every answer must be the same, but for places in acceptance
//! order and lease generations, which a store numbers as it likes. In the end the whole content must be the same.
//!
//! ```no_run
//! use mailslot_core::MemoryStore;
//! use mailslot_testkit::{model, store::Opened};
//!
//! # fn test() {
//! model::run(|clock| async move { Opened::new(MemoryStore::with_clock(clock)) }, 256);
//! # }
//! ```
//!
//! The operations depend on a seed only. `MAILSLOT_MODEL_SEED` chooses another one and `MAILSLOT_MODEL_CASES` another
//! number of cases. What failed once is written to `tests/model.proptest-regressions` of the calling crate; commit
//! it, and it is tried first from then on.

mod draft;
mod op;
mod pair;
mod view;

use crate::store::Opened;
use mailslot_core::ManualClock;
use op::Op;
use pair::Pair;
use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};
use std::future::Future;
use std::sync::Arc;

/// Most operations in one case: enough for a message's whole life, few enough to read when they fail.
const OPERATIONS_MAX: usize = 60;

/// How long a failing case is made smaller, in milliseconds.
const SHRINK_MS_MAX: u32 = 120_000;

/// Where failing cases are kept, from the root of the calling crate.
const REGRESSIONS: &str = "tests/model.proptest-regressions";

/// Compares fresh stores from `open` with the memory store over `cases` random sequences of operations.
///
/// # Panics
/// The two differ. The text names the seed, the difference, and the smallest sequence that shows it.
pub fn run<F, Fut>(open: F, cases: u32)
where
    F: Fn(Arc<ManualClock>) -> Fut,
    Fut: Future<Output = Opened>,
{
    let seed = from_environment("MAILSLOT_MODEL_SEED").unwrap_or(1);
    let cases = from_environment("MAILSLOT_MODEL_CASES")
        .map_or(cases, |cases| u32::try_from(cases).unwrap_or(u32::MAX));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let result = runner(seed, cases).run(&operations(), |operations| {
        runtime.block_on(run_case(&open, operations)).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, operations)) => {
            let told: Vec<_> = operations.iter().map(|operation| format!("{operation:?}")).collect();
            panic!("{reason}\nwith MAILSLOT_MODEL_SEED={seed}, in:\n{}", told.join("\n"))
        }
        Err(error) => panic!("{error}\nwith MAILSLOT_MODEL_SEED={seed}"),
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no whole number")))
}

fn runner(seed: u64, cases: u32) -> TestRunner {
    let config = Config {
        cases,
        max_shrink_time: SHRINK_MS_MAX,
        max_shrink_iters: u32::MAX,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn operations() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op::any_op(), 1..=OPERATIONS_MAX)
}

async fn run_case<F, Fut>(open: &F, operations: Vec<Op>) -> Result<(), String>
where
    F: Fn(Arc<ManualClock>) -> Fut,
    Fut: Future<Output = Opened>,
{
    let clock = Arc::new(ManualClock::default());
    let mut pair = Pair::new(open(Arc::clone(&clock)).await, clock);
    for (number, operation) in operations.into_iter().enumerate() {
        let named = format!("{operation:?}");
        pair.apply(operation).await.map_err(|error| format!("operation {number}, {named}: {error}"))?;
    }
    pair.compare_everything().await.map_err(|error| format!("in the end: {error}"))
}
