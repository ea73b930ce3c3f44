//! Handlers: what they are given, what they may answer, and what becomes of those that break.

use super::bench::{Bench, accepted, builder_on, fine, start, succeed};
use super::script::{Order, Refund, order, scripted};
use super::tap::TapStore;
use crate::message::{message, valid};
use mailslot_core::{
    Attempt, Cancellation, ContentType, Context, Contract, HandlerError, Handoff, IntoVerdict, LeaseToken,
    MessageId, OutcomeKind, Payload, Raw, Reason, SessionKey, State, Status, TenantName, Verdict,
};
use mailslot_engine::{BuildError, HandlerOptions, Inbox, WorkerConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

cases![
    a_handler_takes_the_parts_that_it_names,
    a_state_that_is_missing_fails_the_build_and_names_the_fix,
    two_handlers_of_one_contract_fail_the_build,
    a_raw_handler_takes_content_as_it_is,
    a_pattern_takes_contracts_that_appear_while_it_runs,
    a_handler_of_a_contract_comes_before_a_pattern,
    a_verdict_decides_where_the_message_ends,
    every_kind_of_result_is_a_verdict,
    a_handoff_that_nobody_could_read_is_dead_lettered,
    what_does_not_decode_is_dead_lettered_unseen,
    any_error_is_retried_with_its_causes_as_text,
    a_follow_up_is_handled_without_a_poll,
];

type Seen = (Order, Attempt, MessageId, String);

#[expect(clippy::too_many_arguments, reason = "as many as a handler can take")]
async fn take_all(
    order: Order,
    context: Context,
    State(seen): State<mpsc::UnboundedSender<Seen>>,
    attempt: Attempt,
    id: MessageId,
    lease: LeaseToken,
    tenant: Option<TenantName>,
    session: Option<SessionKey>,
    cancellation: Cancellation,
) {
    assert_eq!((context.attempt(), context.lease()), (attempt, lease));
    assert_eq!(cancellation.cause(), None);
    let place = format!("{tenant:?} {session:?}");
    fine(seen.send((order, attempt, id, place)));
}

async fn a_handler_takes_the_parts_that_it_names(b: &Bench) {
    let (seen, mut saw) = mpsc::unbounded_channel::<Seen>();
    let worker = start(b.builder().handler(take_all).state(seen));
    let receipt = fine(worker.accept(&order(7)).tenant("acme").session("s").await);
    let (order, attempt, id, place) = saw.recv().await.expect("the handler runs");
    assert_eq!((order.number, attempt.number, id), (7, 1, receipt.id));
    assert_eq!(place, r#"Some(TenantName("acme")) Some(SessionKey("s"))"#);
    assert_eq!(worker.stop().await.completed, 1);
}

async fn a_state_that_is_missing_fails_the_build_and_names_the_fix(b: &Bench) {
    async fn handler(_order: Order, State(_rate): State<f64>) {}
    let error = b.builder().handler(handler).build().expect_err("no f64 is registered").to_string();
    assert!(error.contains("`State<f64>`") && error.contains("`.state(value)`"), "{error}");
}

async fn two_handlers_of_one_contract_fail_the_build(b: &Bench) {
    let error = b.builder().handler(succeed).handler(succeed).build().expect_err("one is too many");
    assert!(matches!(error, BuildError::TwoHandlers { .. }), "{error}");
}

async fn a_raw_handler_takes_content_as_it_is(b: &Bench) {
    let (seen, mut saw) = mpsc::unbounded_channel();
    let handler = move |Raw(payload): Raw| {
        let sent = seen.send(payload);
        async move { fine(sent) }
    };
    let contract: Contract = valid("image@2".parse());
    let worker = start(b.builder().raw_handler(contract.clone(), handler, HandlerOptions::new()));
    let payload = valid(Payload::new(vec![0xff, 0x00, 0xfe], valid(ContentType::new("image/png"))));
    fine(worker.accept_raw(contract, payload.clone()).await);
    assert_eq!(saw.recv().await, Some(payload));
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

async fn a_pattern_takes_contracts_that_appear_while_it_runs(b: &Bench) {
    let pattern = |contract: &Contract| contract.name().starts_with("report.");
    let handler = async |_: Raw| ();
    let worker = start(b.builder().raw_handler_for(pattern, handler, HandlerOptions::new()));
    let early = b.accept(message("report.daily")).await.id;
    worker.until(|stats| stats.completed == 1).await;
    let late = b.accept(message("report.weekly@3")).await.id;
    let other = b.accept(message("invoice")).await.id;
    worker.until(|stats| stats.completed == 2).await;
    worker.drain().await;
    worker.stop().await;
    assert_eq!(
        b.statuses([early, late, other]).await,
        [Status::Completed, Status::Completed, Status::Pending]
    );
}

async fn a_handler_of_a_contract_comes_before_a_pattern(b: &Bench) {
    let (handler, mut runs) = scripted();
    let any = async |_: Raw| Verdict::skip("the pattern took it");
    let worker = start(b.builder().raw_handler_for(|_| true, any, HandlerOptions::new()).handler(handler));
    worker.order(1).await;
    b.accept(message("refund").payload(r#"{"number":1}"#)).await;
    runs.next().await.complete();
    worker.until(|stats| stats.completed == 1 && stats.skipped == 1).await;
    worker.stop().await;
}

async fn a_verdict_decides_where_the_message_ends(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let mut ends = Vec::new();
    let verdicts = [
        Verdict::complete(),
        Verdict::retry_after(Duration::from_secs(1), "later"),
        Verdict::dead_letter("broken"),
        Verdict::skip("not ours"),
        Verdict::skip("not ours").because(Reason::Discarded),
        valid(Handoff::new("waits for the bank")).into(),
    ];
    for verdict in verdicts {
        let id = worker.order(1).await;
        runs.next().await.end(verdict);
        ends.push(id);
    }
    worker
        .until(|stats| {
            stats.completed + stats.retried + stats.dead_lettered + stats.skipped + stats.suspended == 6
        })
        .await;
    worker.stop().await;
    let chosen = Some(Reason::HandlerChoice);
    assert_eq!(b.end(ends[0]).await, (Status::Completed, None));
    assert_eq!(b.end(ends[1]).await, (Status::Pending, chosen));
    assert_eq!(b.end(ends[2]).await, (Status::DeadLettered, chosen));
    assert_eq!(b.end(ends[3]).await, (Status::Skipped, chosen));
    assert_eq!(b.end(ends[4]).await, (Status::Skipped, Some(Reason::Discarded)));
    assert_eq!(b.end(ends[5]).await, (Status::Suspended, None));
    assert_eq!(b.record(ends[2]).await.error.expect("the text is kept").as_str(), "broken");
    assert_eq!(b.record(ends[5]).await.handoff.expect("the handoff is kept").reason, "waits for the bank");
}

async fn every_kind_of_result_is_a_verdict(b: &Bench) {
    assert_eq!(result_of(b, "unit", async |_: Raw| ()).await, Status::Completed);
    assert_eq!(result_of(b, "verdict", async |_: Raw| Verdict::skip("so")).await, Status::Skipped);
    assert_eq!(result_of(b, "ok", async |_: Raw| Ok::<_, HandlerError>(())).await, Status::Completed);
    let skipped = async |_: Raw| Ok::<_, std::fmt::Error>(Verdict::skip("so"));
    assert_eq!(result_of(b, "ok-verdict", skipped).await, Status::Skipped);
    assert_eq!(result_of(b, "error", async |_: Raw| Err::<(), _>(std::fmt::Error)).await, Status::Pending);
    let handoff = async |_: Raw| valid(Handoff::new("waits"));
    assert_eq!(result_of(b, "handoff", handoff).await, Status::Suspended);
}

/// Where a message ends whose handler gives a result of this type.
async fn result_of<F, Fut>(b: &Bench, contract: &str, handler: F) -> Status
where
    F: Fn(Raw) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output: IntoVerdict> + Send + 'static,
{
    let worker = start(b.builder().raw_handler(valid(contract.parse()), handler, HandlerOptions::new()));
    let id = b.accept(message(contract)).await.id;
    worker.drain().await;
    worker.stop().await;
    b.status(id).await
}

async fn a_handoff_that_nobody_could_read_is_dead_lettered(b: &Bench) {
    let blank = async |_: Order| Handoff { reason: " ".into(), external_job_id: None, expected_by: None };
    let worker = start(b.builder().handler(blank));
    let id = worker.order(1).await;
    worker.until(|stats| stats.dead_lettered == 1).await;
    worker.stop().await;
    assert_eq!(b.end(id).await, (Status::DeadLettered, Some(Reason::Permanent)));
}

async fn what_does_not_decode_is_dead_lettered_unseen(b: &Bench) {
    let worker = start(b.builder().handler(succeed));
    let payloads: [&[u8]; 5] = [
        b"",
        b"not json",
        br#"{"number":"secret","note":""}"#,
        br#"{"number":1,"note":"\ud800"}"#,
        b"{\"number\":1,\"note\":\"\xff\"}",
    ];
    let mut ids = Vec::new();
    for payload in payloads {
        ids.push(b.accept(message("order").payload(payload)).await.id);
    }
    worker.until(|stats| stats.dead_lettered == 5).await;
    assert_eq!(worker.stop().await.completed, 0);
    for id in ids {
        assert_eq!(b.outcomes(id).await, [(OutcomeKind::DeadLettered, Some(Reason::Undecodable))]);
        let error = b.record(id).await.error.expect("the text is kept");
        assert!(!error.as_str().contains("secret"), "`{error}` quotes the payload");
    }
}

async fn any_error_is_retried_with_its_causes_as_text(b: &Bench) {
    async fn handler(order: Order) -> Result<(), HandlerError> {
        let _: u32 = order.note.parse()?;
        Ok(())
    }
    let worker = start(b.builder().handler(handler));
    let id = accepted(&worker, 1).await.id;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
    assert_eq!(b.end(id).await, (Status::Pending, Some(Reason::Failed)));
    let error = b.record(id).await.error.expect("the text is kept");
    assert_eq!(error.as_str(), "cannot parse integer from empty string");
}

/// The store announces nothing here, so only the inbox's own wake can bring the follow-up before the poll, which is an
/// hour away. One thread, so that the handler has ended before the worker looks at the wake.
async fn a_follow_up_is_handled_without_a_poll(b: &Bench) {
    let tap = TapStore::silent(Arc::clone(&b.store));
    let alone = move || {
        let runtime = fine(tokio::runtime::Builder::new_current_thread().enable_all().build());
        runtime.block_on(follow_up(tap));
    };
    fine(tokio::task::spawn_blocking(alone).await);
}

async fn follow_up(tap: TapStore) {
    let (send_inbox, inbox) = watch::channel(None::<Inbox<_>>);
    let handler = move |_: Order| {
        let inbox = inbox.borrow().clone();
        async move {
            let inbox = inbox.expect("the case has set it");
            fine(inbox.accept(&Refund { number: 1 }).await);
            inbox.wake();
        }
    };
    let config = WorkerConfig { poll: Duration::from_secs(3600), ..Default::default() };
    let refunded = async |_: Refund| ();
    let worker = start(builder_on(tap).handler(handler).handler(refunded).worker(config));
    send_inbox.send_replace(Some((*worker).clone()));
    worker.order(1).await;
    worker.wake();
    worker.until(|stats| stats.completed == 2).await;
    worker.stop().await;
}
