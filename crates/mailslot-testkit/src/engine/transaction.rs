//! Transactions of the caller's: accepts and handlers whose effects commit with what the inbox stores, or not at all.

use super::bench::{Bench, LEASE_SECONDS, Worker, builder_on, fine, lose_leases, start};
use super::script::{Order, noted};
use super::tap::{Call, TapStore};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use mailslot_core::store::Filter;
use mailslot_core::{
    CancelCause, Context, HandlerError, Handoff, MessageId, OutcomeKind, Receipt, Status, Verdict,
};
use mailslot_engine::{AcceptError, Hook, HookFailurePolicy, InboxBuilder, WorkerConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How a handler ends after it has written its effect.
pub type Body = Arc<dyn Fn(Order, Context) -> BoxFuture<'static, Verdict> + Send + Sync>;

/// What a store that takes part in the caller's transactions lets the suite do. Effects are rows of the application's,
/// in the same database.
#[async_trait]
pub trait Transactions: Send + Sync + 'static {
    /// Accepts an order by `Inbox::accept_in`, in a transaction of the application's that also writes an effect, and
    /// then commits it or rolls it back.
    async fn accept_in(&self, order: &Order, effect: &str, commit: bool) -> Result<Receipt, AcceptError>;

    /// As [`accept_in`](Self::accept_in), strictly and with a key: commits what is accepted, and rolls back with what is
    /// refused.
    async fn accept_strictly_in(
        &self,
        order: &Order,
        key: &str,
        effect: &str,
    ) -> Result<Receipt, AcceptError>;

    /// Registers a handler of orders that takes the handler's transaction, writes the order's note in it as an effect,
    /// and then ends as `body` does.
    fn handler(&self, builder: InboxBuilder<TapStore>, body: Body) -> InboxBuilder<TapStore>;

    /// The effects that are committed, in the order in which they were written.
    async fn effects(&self) -> Vec<String>;
}

cases![
    an_accept_commits_with_the_callers_effects needs Transactions,
    an_accept_is_gone_with_the_callers_effects needs Transactions,
    a_committed_accept_is_noticed_and_handled needs Transactions,
    a_refused_accept_in_a_transaction_says_why needs Transactions,
    a_strict_accept_of_a_known_message_is_refused_with_all_that_the_caller_wrote needs Transactions,
    the_effects_of_a_handler_commit_with_its_completion needs Transactions,
    the_effects_of_a_handler_are_undone_with_every_other_verdict needs Transactions,
    the_effects_of_a_panicking_handler_are_undone needs Transactions,
    the_effects_of_a_handler_past_its_limit_are_undone needs Transactions,
    the_effects_of_a_handler_that_succeeds_later_are_there_once needs Transactions,
    the_effects_of_a_handler_that_lost_its_lease_are_undone needs Transactions,
    the_effects_of_a_killed_worker_are_undone needs Transactions,
    the_effects_of_a_handler_past_the_grace_time_are_undone needs Transactions,
    the_effects_follow_the_policy_for_a_failing_hook needs Transactions,
];

fn transactions(b: &Bench) -> &Arc<dyn Transactions> {
    b.transactions.as_ref().expect("the case needs transactions")
}

fn body<F, Fut>(body: F) -> Body
where
    F: Fn(Order, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Verdict> + Send + 'static,
{
    Arc::new(move |order, context| Box::pin(body(order, context)))
}

/// A worker whose handler writes the note of each order and then ends so.
fn work(b: &Bench, ends: Body) -> Worker {
    start(transactions(b).handler(b.builder(), ends))
}

fn succeeds() -> Body {
    body(async |_, _| Verdict::complete())
}

async fn note(worker: &Worker, note: &str) -> MessageId {
    fine(worker.accept(&noted(note)).await).id
}

async fn an_accept_commits_with_the_callers_effects(b: &Bench) {
    let receipt = fine(transactions(b).accept_in(&noted("a"), "paid", true).await);
    assert!(receipt.is_new());
    assert_eq!(b.find(Filter::default()).await, [receipt.id]);
    assert_eq!(transactions(b).effects().await, ["paid"]);
}

async fn an_accept_is_gone_with_the_callers_effects(b: &Bench) {
    fine(transactions(b).accept_in(&noted("a"), "paid", false).await);
    assert_eq!(b.find(Filter::default()).await, []);
    assert_eq!(transactions(b).effects().await, Vec::<String>::new());
}

async fn a_committed_accept_is_noticed_and_handled(b: &Bench) {
    let worker = work(b, succeeds());
    fine(transactions(b).accept_in(&noted("handled"), "paid", true).await);
    worker.wake();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!(transactions(b).effects().await, ["paid", "handled"]);
}

async fn a_refused_accept_in_a_transaction_says_why(b: &Bench) {
    let large = noted(&"x".repeat(mailslot_core::limits::PAYLOAD_BYTES_MAX));
    let refused = transactions(b).accept_in(&large, "paid", false).await;
    assert!(matches!(refused, Err(AcceptError::Field(error)) if error.field() == "payload"));
}

async fn a_strict_accept_of_a_known_message_is_refused_with_all_that_the_caller_wrote(b: &Bench) {
    let transactions = transactions(b);
    let first = fine(transactions.accept_strictly_in(&noted("a"), "k", "paid").await);
    assert!(first.is_new());
    let again = transactions.accept_strictly_in(&noted("a"), "k", "paid twice").await;
    let Err(AcceptError::Duplicate { first: id, status }) = again else { panic!("a duplicate: {again:?}") };
    assert_eq!((id, status), (first.id, Status::Pending));
    let other = transactions.accept_strictly_in(&noted("b"), "k", "paid twice").await;
    assert!(matches!(other, Err(AcceptError::Conflict { first: id, .. }) if id == first.id));
    fine(transactions.accept_strictly_in(&noted("b"), "l", "paid else").await);
    assert_eq!(b.find(Filter::default()).await.len(), 2);
    assert_eq!(transactions.effects().await, ["paid", "paid else"]);
}

async fn the_effects_of_a_handler_commit_with_its_completion(b: &Bench) {
    let worker = work(b, succeeds());
    let id = note(&worker, "a").await;
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!(b.outcomes(id).await, [(OutcomeKind::Completed, None)]);
    assert_eq!(transactions(b).effects().await, ["a"]);
}

async fn the_effects_of_a_handler_are_undone_with_every_other_verdict(b: &Bench) {
    let by_note = body(async |order: Order, _| match order.note.as_str() {
        "retry" => HandlerError::retryable("closed").into(),
        "dead" => Verdict::dead_letter("broken"),
        "skip" => Verdict::skip("not ours"),
        _ => fine(Handoff::new("waits for the bank")).into(),
    });
    let worker = work(b, by_note);
    for text in ["retry", "dead", "skip", "suspend"] {
        note(&worker, text).await;
    }
    let ended = |stats: &mailslot_engine::Stats| {
        stats.retried + stats.dead_lettered + stats.skipped + stats.suspended
    };
    worker.until(|stats| ended(stats) == 4).await;
    worker.stop().await;
    assert_eq!(transactions(b).effects().await, Vec::<String>::new());
}

async fn the_effects_of_a_panicking_handler_are_undone(b: &Bench) {
    let worker = work(b, body(async |_, _| std::panic::resume_unwind(Box::new("no such account"))));
    note(&worker, "a").await;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
    assert_eq!(transactions(b).effects().await, Vec::<String>::new());
}

async fn the_effects_of_a_handler_past_its_limit_are_undone(b: &Bench) {
    let config = WorkerConfig { time_limit: Some(Duration::from_millis(50)), ..WorkerConfig::default() };
    let endless = body(async |_, _| std::future::pending().await);
    let worker = start(transactions(b).handler(b.builder().worker(config), endless));
    note(&worker, "a").await;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
    assert_eq!(transactions(b).effects().await, Vec::<String>::new());
}

async fn the_effects_of_a_handler_that_succeeds_later_are_there_once(b: &Bench) {
    let second_time = body(async |_, context: Context| match context.attempt().number {
        1 => HandlerError::retryable("closed").into(),
        _ => Verdict::complete(),
    });
    let worker = work(b, second_time);
    note(&worker, "a").await;
    worker.until(|stats| stats.retried == 1).await;
    b.pass_retry(&worker);
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!(transactions(b).effects().await, ["a"]);
}

/// Keeps the first attempt from its handler until its lease is lost.
struct UntilLost(mpsc::UnboundedSender<()>);

#[async_trait]
impl Hook for UntilLost {
    async fn before_dispatch(&self, context: &Context) -> Result<(), HandlerError> {
        if context.attempt().number == 1 {
            fine(self.0.send(()));
            assert_eq!(context.cancellation().cancelled().await, CancelCause::LeaseLost);
        }
        Ok(())
    }
}

async fn the_effects_of_a_handler_that_lost_its_lease_are_undone(b: &Bench) {
    let (begins, mut has_begun) = mpsc::unbounded_channel();
    let builder = b.builder().hook(UntilLost(begins)).concurrency(2);
    let attempts = body(async |_, _| Verdict::complete());
    let worker = start(transactions(b).handler(builder, attempts));
    let id = note(&worker, "a").await;
    has_begun.recv().await.expect("the first attempt begins");
    lose_leases(b, &worker).await;
    worker.until(|stats| stats.completed == 1).await;
    b.tap.mend(Call::Extend);
    worker.until(|stats| stats.lease_lost == 1).await;
    worker.stop().await;
    assert_eq!(b.end(id).await, (Status::Completed, None));
    assert_eq!(transactions(b).effects().await, ["a"]);
}

/// A handler that tells that it runs and never ends.
fn endless() -> (Body, mpsc::UnboundedReceiver<()>) {
    let (begins, has_begun) = mpsc::unbounded_channel();
    let endless = body(move |_, _| {
        let _ = begins.send(());
        std::future::pending()
    });
    (endless, has_begun)
}

async fn the_effects_of_a_killed_worker_are_undone(b: &Bench) {
    let (endless, mut has_begun) = endless();
    let dying = work(b, endless);
    let id = note(&dying, "a").await;
    has_begun.recv().await.expect("the handler begins");
    dying.kill().await;
    b.advance(LEASE_SECONDS);
    let other = start(transactions(b).handler(builder_on(b.other_process()), succeeds()));
    other.until(|stats| stats.completed == 1).await;
    other.stop().await;
    assert_eq!(b.attempt(id).await, 2);
    assert_eq!(transactions(b).effects().await, ["a"]);
}

async fn the_effects_of_a_handler_past_the_grace_time_are_undone(b: &Bench) {
    let (endless, mut has_begun) = endless();
    let config = WorkerConfig { grace: Duration::from_millis(20), ..WorkerConfig::default() };
    let worker = start(transactions(b).handler(b.builder().worker(config), endless));
    let id = note(&worker, "a").await;
    has_begun.recv().await.expect("the handler begins");
    assert_eq!(worker.stop().await.released, 1);
    assert_eq!((b.status(id).await, b.attempt(id).await), (Status::Pending, 0));
    assert_eq!(transactions(b).effects().await, Vec::<String>::new());
}

struct FailsAfter;

#[async_trait]
impl Hook for FailsAfter {
    async fn after_dispatch(&self, _: &Context, _: &Verdict) -> Result<(), HandlerError> {
        Err(HandlerError::retryable("the hook is broken"))
    }
}

async fn the_effects_follow_the_policy_for_a_failing_hook(b: &Bench) {
    let policies = [
        (HookFailurePolicy::DeadLetter, Status::DeadLettered, vec![]),
        (HookFailurePolicy::CompleteDespite, Status::Completed, vec!["a"]),
    ];
    for (policy, status, effects) in policies {
        let builder = b.builder().hook(FailsAfter).hook_failure(policy);
        let worker = start(transactions(b).handler(builder, succeeds()));
        let id = note(&worker, "a").await;
        worker.until(|stats| stats.dead_lettered + stats.completed == 1).await;
        worker.stop().await;
        assert_eq!(b.status(id).await, status);
        assert_eq!(transactions(b).effects().await, effects);
    }
}
