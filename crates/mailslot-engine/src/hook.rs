//! Hooks: what a program runs around every handler, and what a failing one means.

use async_trait::async_trait;
use mailslot_core::{Context, HandlerError, Verdict};

/// Runs around every dispatch, in the order of registration.
///
/// Order for one message: `before_dispatch` of all hooks, `should_dispatch` of all, the handler, `after_dispatch` of
/// all, then the settlement. Whenever this sequence does not reach its end, `abandon` of all hooks is called instead
/// of what is left.
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// Runs first. An error counts as the handler's own.
    async fn before_dispatch(&self, _context: &Context) -> Result<(), HandlerError> {
        Ok(())
    }

    /// May veto: the message is then skipped with the reason `vetoed`. Every hook is asked; one veto is enough.
    async fn should_dispatch(&self, _context: &Context) -> Result<bool, HandlerError> {
        Ok(true)
    }

    /// Runs after the handler, whatever it decided, and before the settlement.
    async fn after_dispatch(&self, _context: &Context, _verdict: &Verdict) -> Result<(), HandlerError> {
        Ok(())
    }

    /// The sequence did not reach its end: undo what `before_dispatch` began.
    async fn abandon(&self, _context: &Context) {}
}

/// What an error in `after_dispatch` does to a message whose handler succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookFailurePolicy {
    /// Dead-letter it with the reason `hook_failed`, for someone to look at: it must not run twice by itself.
    #[default]
    DeadLetter,
    /// Complete it and only log and count the failure.
    CompleteDespite,
}
