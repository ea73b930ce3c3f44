//! Running one message: hooks, handler, verdict. A panic in any of them is an error of this message and of no other.

use super::backlog::{Backlog, Job};
use super::hooks::{self, panic_text};
use crate::inbox::Engine;
use crate::route::Route;
use futures_util::FutureExt;
use mailslot_core::handler::{VerdictKind, decide};
use mailslot_core::store::Settled;
use mailslot_core::{
    CancelCause, Cancellation, Context, Delivery, Disposition, EnlistedTransaction, ErrorText, HandlerError,
    Reason, Settlement, Verdict,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

/// What became of a job.
#[derive(Debug)]
pub(super) enum Finished {
    /// The turn loop has to settle it.
    Decided(Settlement),
    /// It is settled already, in its handler's transaction.
    Settled(Settlement, Settled),
}

/// Takes jobs one after the other.
pub(super) struct Executor {
    engine: Arc<Engine>,
    backlog: Arc<Backlog>,
    abort: watch::Receiver<bool>,
    finished: mpsc::UnboundedSender<Finished>,
}

impl Executor {
    pub(super) fn new(
        engine: Arc<Engine>,
        backlog: Arc<Backlog>,
        abort: watch::Receiver<bool>,
        finished: mpsc::UnboundedSender<Finished>,
    ) -> Self {
        Self { engine, backlog, abort, finished }
    }

    pub(super) async fn run(mut self) {
        while let Some(job) = self.backlog.next().await {
            let finished = self.run_job(job).await;
            // The turn loop outlives the executors, unless the whole run was dropped.
            if self.finished.send(finished).is_err() {
                return;
            }
        }
    }

    async fn run_job(&mut self, job: Job) -> Finished {
        let Job { leased, cancellation } = job;
        let route = self.engine.routes.get(&leased.envelope.contract);
        let (Some(route), None) = (route, cancellation.cause()) else {
            // Lost, cancelled or stopping before it started: the store decides what a release means.
            return Finished::Decided(settlement_of(&leased, Disposition::Release, None));
        };
        self.engine.stats.add(|stats| stats.started += 1);
        let context = Context::new(leased, cancellation, self.engine.extensions.clone());
        let verdict = tokio::select! {
            biased;
            verdict = dispatch(&self.engine, route, &context) => Some(verdict),
            _ = self.abort.wait_for(|abort| *abort) => None,
        };
        let Some(verdict) = verdict else {
            hooks::abandon(&self.engine, &context).await;
            roll_back(context.take_enlisted()).await;
            return Finished::Decided(settlement(&context, Disposition::Release, None));
        };
        conclude(&self.engine, route, &context, verdict).await
    }
}

fn settlement(context: &Context, disposition: Disposition, error: Option<ErrorText>) -> Settlement {
    let (lease, attempt) = (context.lease(), context.attempt());
    Settlement { lease, seq: context.envelope().seq, attempt, disposition, error }
}

fn settlement_of(
    leased: &mailslot_core::store::Leased,
    disposition: Disposition,
    error: Option<ErrorText>,
) -> Settlement {
    Settlement { lease: leased.lease, seq: leased.envelope.seq, attempt: leased.attempt, disposition, error }
}

/// Runs hooks and handler.
async fn dispatch(engine: &Engine, route: &Route, context: &Context) -> Verdict {
    let verdict = match hooks::before(engine, context).await {
        Ok(true) => handle(engine, route, context).await,
        Ok(false) => Verdict::skip("a hook vetoed the dispatch").because(Reason::Vetoed),
        Err(error) => return error.reason(Reason::HookFailed).into(),
    };
    hooks::after(engine, context, verdict).await
}

async fn handle(engine: &Engine, route: &Route, context: &Context) -> Verdict {
    let delivery = Delivery { context: context.clone() };
    // The clone is inside: it runs the code of layers, too.
    let call = AssertUnwindSafe(async { route.service.clone().oneshot(delivery).await }).catch_unwind();
    let result = match route.time_limit {
        Some(limit) => match tokio::time::timeout(limit, call).await {
            Ok(result) => result,
            Err(_) => return timed_out(limit),
        },
        None => call.await,
    };
    let verdict = match result {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(error)) => HandlerError::retryable(error).into(),
        Err(panic) => {
            HandlerError::retryable(format!("the handler panicked: {}", panic_text(panic.as_ref())))
                .reason(Reason::Panicked)
                .into()
        }
    };
    classify(engine, verdict)
}

fn timed_out(limit: Duration) -> Verdict {
    HandlerError::retryable(format!("the handler ran past its limit of {limit:?}"))
        .reason(Reason::TimedOut)
        .into()
}

fn classify(engine: &Engine, verdict: Verdict) -> Verdict {
    let Some((classify, failure)) = engine.classifier.as_ref().zip(verdict.failure()) else { return verdict };
    match catch_unwind(AssertUnwindSafe(|| classify(failure))) {
        Ok(Some(class)) => verdict.reclass(class),
        Ok(None) => verdict,
        Err(panic) => {
            let panic = panic_text(panic.as_ref());
            tracing::error!(panic, "the classifier panicked; the handler's own word stands");
            verdict
        }
    }
}

/// Turns the verdict into a settlement, in the handler's own transaction if it took one.
async fn conclude(engine: &Engine, route: &Route, context: &Context, verdict: Verdict) -> Finished {
    let (disposition, error) = decide_for(engine, route, context, verdict);
    let settlement = settlement(context, disposition, error);
    let Some(transaction) = context.take_enlisted() else { return Finished::Decided(settlement) };
    if settlement.disposition != Disposition::Complete {
        roll_back(Some(transaction)).await;
        return Finished::Decided(settlement);
    }
    match transaction.settle_and_commit(settlement.clone()).await {
        Ok(settled) => Finished::Settled(settlement, settled),
        Err(failed) => {
            roll_back(Some(transaction)).await;
            let verdict = HandlerError::retryable(failed).into();
            let (disposition, error) = decide_for(engine, route, context, verdict);
            Finished::Decided(Settlement { disposition, error, ..settlement })
        }
    }
}

fn decide_for(
    engine: &Engine,
    route: &Route,
    context: &Context,
    verdict: Verdict,
) -> (Disposition, Option<ErrorText>) {
    let unfinished = matches!(verdict.kind(), VerdictKind::Retry(_));
    let cause = Cancellation::cause(context.cancellation());
    if unfinished && cause == Some(CancelCause::Shutdown) {
        return (Disposition::Release, None);
    }
    if unfinished && cause == Some(CancelCause::Requested) {
        let reason = verdict.reason().unwrap_or(Reason::Failed);
        // Even if no attempt is left: the store ends it as cancelled.
        return (Disposition::Retry { after: Duration::ZERO, reason }, verdict.error().cloned());
    }
    decide(verdict, context.attempt().number, &route.retry, engine.random.unit())
}

async fn roll_back(transaction: Option<Arc<dyn EnlistedTransaction>>) {
    let Some(transaction) = transaction else { return };
    if let Err(error) = transaction.roll_back().await {
        tracing::debug!(%error, "a handler's transaction was over already, or its connection, which ends it");
    }
}
