//! Calling hooks. A panic in one is an error of that hook: an executor that died with it would take its message along.

use crate::hook::HookFailurePolicy;
use crate::inbox::Engine;
use futures_util::FutureExt;
use mailslot_core::{Context, HandlerError, Reason, Verdict};
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

/// Runs what comes before the handler. `false`: a hook vetoed. After an error the hooks are abandoned already.
pub(super) async fn before(engine: &Engine, context: &Context) -> Result<bool, HandlerError> {
    let wanted = ask(engine, context).await;
    if let Err(error) = &wanted {
        give_up(engine, context, error).await;
    }
    wanted
}

async fn ask(engine: &Engine, context: &Context) -> Result<bool, HandlerError> {
    for hook in &engine.hooks {
        guarded(hook.before_dispatch(context)).await?;
    }
    let mut wanted = true;
    for hook in &engine.hooks {
        wanted &= guarded(hook.should_dispatch(context)).await?;
    }
    Ok(wanted)
}

/// Runs what comes after the handler, and gives the verdict that then holds.
pub(super) async fn after(engine: &Engine, context: &Context, verdict: Verdict) -> Verdict {
    for hook in &engine.hooks {
        let Err(error) = guarded(hook.after_dispatch(context, &verdict)).await else { continue };
        give_up(engine, context, &error).await;
        let undo = verdict.is_complete() && engine.hook_failure == HookFailurePolicy::DeadLetter;
        return if undo {
            HandlerError::permanent(format!("{error:?}")).reason(Reason::HookFailed).into()
        } else {
            verdict
        };
    }
    verdict
}

async fn give_up(engine: &Engine, context: &Context, error: &HandlerError) {
    tracing::warn!(id = %context.envelope().id, ?error, "a hook failed");
    engine.stats.add(|stats| stats.hooks_failed += 1);
    abandon(engine, context).await;
}

/// Tells every hook that the sequence did not reach its end.
pub(crate) async fn abandon(engine: &Engine, context: &Context) {
    for hook in &engine.hooks {
        let told = async {
            hook.abandon(context).await;
            Ok(())
        };
        if let Err(error) = guarded(told).await {
            tracing::error!(id = %context.envelope().id, ?error, "a hook failed while it was abandoned");
        }
    }
}

async fn guarded<T>(call: impl Future<Output = Result<T, HandlerError>>) -> Result<T, HandlerError> {
    let panicked = |panic: Box<dyn Any + Send>| format!("a hook panicked: {}", panic_text(panic.as_ref()));
    AssertUnwindSafe(call)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(HandlerError::retryable(panicked(panic))))
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "(no text)".into())
}
