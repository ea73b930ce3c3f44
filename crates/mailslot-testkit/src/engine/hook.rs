//! Hooks around handlers.

use super::bench::{Bench, Worker, start};
use super::layer::Log;
use super::script::Order;
use mailslot_core::{Context, HandlerError, MessageId, Reason, Status, Verdict};
use mailslot_engine::{Hook, HookFailurePolicy};

cases![
    hooks_run_around_the_handler_in_order,
    one_veto_is_enough_and_every_hook_is_asked,
    an_error_before_the_handler_is_retried_and_the_hooks_are_abandoned,
    an_error_in_asking_is_like_an_error_before,
    a_permanent_error_before_the_handler_is_the_end,
    an_error_after_a_success_is_dead_lettered,
    an_error_after_a_success_is_completed_despite_it_by_choice,
    an_error_after_a_failure_changes_nothing,
];

/// Makes the error of a hook.
type Error = fn(&'static str) -> HandlerError;

/// Writes down what it is asked, and fails or vetoes where it is told to.
struct Spy {
    name: &'static str,
    log: Log,
    fails: Option<(&'static str, Error)>,
    vetoes: bool,
}

impl Spy {
    fn quiet(name: &'static str, log: &Log) -> Self {
        Self { name, log: log.clone(), fails: None, vetoes: false }
    }

    fn failing(name: &'static str, log: &Log, place: &'static str) -> Self {
        Self { fails: Some((place, HandlerError::retryable)), ..Self::quiet(name, log) }
    }

    fn at(&self, place: &'static str) -> Result<(), HandlerError> {
        self.log.add(format!("{} {place}", self.name));
        match self.fails {
            Some((fails, error)) if fails == place => Err(error("the hook is broken")),
            _ => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Hook for Spy {
    async fn before_dispatch(&self, _: &Context) -> Result<(), HandlerError> {
        self.at("before")
    }

    async fn should_dispatch(&self, _: &Context) -> Result<bool, HandlerError> {
        self.at("should").map(|()| !self.vetoes)
    }

    async fn after_dispatch(&self, _: &Context, verdict: &Verdict) -> Result<(), HandlerError> {
        self.at(if verdict.is_complete() { "after success" } else { "after failure" })
    }

    async fn abandon(&self, _: &Context) {
        self.log.add(format!("{} abandon", self.name));
    }
}

/// Lets one order run through two hooks, and gives where it ends.
async fn run(
    b: &Bench,
    log: &Log,
    first: Spy,
    second: Spy,
    policy: HookFailurePolicy,
) -> (Status, Option<Reason>) {
    let (worker, id) = dispatch(b, log, first, second, policy).await;
    worker.drain().await;
    worker.stop().await;
    b.end(id).await
}

async fn dispatch(
    b: &Bench,
    log: &Log,
    first: Spy,
    second: Spy,
    policy: HookFailurePolicy,
) -> (Worker, MessageId) {
    let log = log.clone();
    let handler = move |_: Order| {
        log.add("handler");
        async {}
    };
    let worker = start(b.builder().handler(handler).hook(first).hook(second).hook_failure(policy));
    let id = worker.order(1).await;
    (worker, id)
}

const BOTH_BEFORE: [&str; 4] = ["a before", "b before", "a should", "b should"];

async fn hooks_run_around_the_handler_in_order(b: &Bench) {
    let log = Log::default();
    let (first, second) = (Spy::quiet("a", &log), Spy::quiet("b", &log));
    let end = run(b, &log, first, second, HookFailurePolicy::DeadLetter).await;
    assert_eq!(end, (Status::Completed, None));
    assert_eq!(log.lines()[..4], BOTH_BEFORE);
    assert_eq!(log.lines()[4..], ["handler", "a after success", "b after success"]);
}

async fn one_veto_is_enough_and_every_hook_is_asked(b: &Bench) {
    let log = Log::default();
    let (first, second) = (Spy { vetoes: true, ..Spy::quiet("a", &log) }, Spy::quiet("b", &log));
    let end = run(b, &log, first, second, HookFailurePolicy::DeadLetter).await;
    assert_eq!(end, (Status::Skipped, Some(Reason::Vetoed)));
    assert_eq!(log.lines()[..4], BOTH_BEFORE);
    assert_eq!(log.lines()[4..], ["a after failure", "b after failure"]);
}

async fn an_error_before_the_handler_is_retried_and_the_hooks_are_abandoned(b: &Bench) {
    let log = Log::default();
    let (first, second) = (Spy::failing("a", &log, "before"), Spy::quiet("b", &log));
    let end = run(b, &log, first, second, HookFailurePolicy::DeadLetter).await;
    assert_eq!(end, (Status::Pending, Some(Reason::HookFailed)));
    assert_eq!(log.lines(), ["a before", "a abandon", "b abandon"]);
}

async fn an_error_in_asking_is_like_an_error_before(b: &Bench) {
    let log = Log::default();
    let (first, second) = (Spy::quiet("a", &log), Spy::failing("b", &log, "should"));
    let end = run(b, &log, first, second, HookFailurePolicy::DeadLetter).await;
    assert_eq!(end, (Status::Pending, Some(Reason::HookFailed)));
    assert_eq!(log.lines()[..4], BOTH_BEFORE);
    assert_eq!(log.lines()[4..], ["a abandon", "b abandon"]);
}

async fn a_permanent_error_before_the_handler_is_the_end(b: &Bench) {
    let log = Log::default();
    let first = Spy { fails: Some(("before", HandlerError::permanent)), ..Spy::quiet("a", &log) };
    let end = run(b, &log, first, Spy::quiet("b", &log), HookFailurePolicy::DeadLetter).await;
    assert_eq!(end, (Status::DeadLettered, Some(Reason::HookFailed)));
}

async fn an_error_after_a_success_is_dead_lettered(b: &Bench) {
    let log = Log::default();
    let (first, second) = (Spy::failing("a", &log, "after success"), Spy::quiet("b", &log));
    let (worker, id) = dispatch(b, &log, first, second, HookFailurePolicy::DeadLetter).await;
    worker.until(|stats| stats.dead_lettered == 1).await;
    assert_eq!(worker.stop().await.hooks_failed, 1);
    assert_eq!(b.end(id).await, (Status::DeadLettered, Some(Reason::HookFailed)));
    assert_eq!(log.lines()[4..], ["handler", "a after success", "a abandon", "b abandon"]);
}

async fn an_error_after_a_success_is_completed_despite_it_by_choice(b: &Bench) {
    let log = Log::default();
    let (first, second) = (Spy::failing("a", &log, "after success"), Spy::quiet("b", &log));
    let (worker, id) = dispatch(b, &log, first, second, HookFailurePolicy::CompleteDespite).await;
    worker.until(|stats| stats.completed == 1).await;
    assert_eq!(worker.stop().await.hooks_failed, 1);
    assert_eq!(b.end(id).await, (Status::Completed, None));
}

async fn an_error_after_a_failure_changes_nothing(b: &Bench) {
    let log = Log::default();
    let handler = async |_: Order| Verdict::skip("not ours");
    let worker = start(b.builder().handler(handler).hook(Spy::failing("a", &log, "after failure")));
    let id = worker.order(1).await;
    worker.until(|stats| stats.skipped == 1).await;
    worker.stop().await;
    assert_eq!(b.end(id).await, (Status::Skipped, Some(Reason::HandlerChoice)));
}
