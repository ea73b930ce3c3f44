//! Running one message: hooks, handler, verdict. A panic in any of them is an error of this message and of no other.
//!
//! Workers and subscribers come here with a [`Context`]; how they settle what was decided is their own affair.

mod hooks;

pub(crate) use hooks::abandon;

use crate::inbox::Engine;
use crate::route::Route;
use futures_util::FutureExt;
use hooks::panic_text;
use mailslot_core::handler::{VerdictKind, decide};
use mailslot_core::{
    CancelCause, Cancellation, Context, Delivery, Disposition, EnlistedTransaction, ErrorText, HandlerError,
    Reason, Verdict,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tower::ServiceExt;

/// Runs hooks and handler.
pub(crate) async fn run(engine: &Engine, route: &Route, context: &Context) -> Verdict {
    let begun = Instant::now();
    let verdict = match hooks::before(engine, context).await {
        Ok(true) => handle(engine, route, context).await,
        Ok(false) => Verdict::skip("a hook vetoed the dispatch").because(Reason::Vetoed),
        Err(error) => return error.reason(Reason::HookFailed).into(),
    };
    engine.circuit.report(&verdict, begun, context.cancellation());
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

/// What a verdict on this attempt comes to, with the stop or the cancel that was asked for meanwhile.
pub(crate) fn decide_for(
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

/// Undoes what a handler wrote in a transaction that is not to be committed.
pub(crate) async fn roll_back(transaction: Option<Arc<dyn EnlistedTransaction>>) {
    let Some(transaction) = transaction else { return };
    if let Err(error) = transaction.roll_back().await {
        tracing::debug!(%error, "a handler's transaction was over already, or its connection, which ends it");
    }
}
