//! Observers and sinks: what they hear, and that they change nothing.

use super::super::bench::{
    Bench, LEASE_SECONDS, accepted, builder_on, fail, fine, start as start_worker, succeed,
};
use super::super::script::{Order, noted, scripted};
use super::{encoded, rig, sent, sent_in, start};
use async_trait::async_trait;
use mailslot_core::breaker::{BreakerConfig, Circuit};
use mailslot_core::broker::{BrokerMessage, CONTRACT_HEADER, Receiver as _};
use mailslot_core::handler::BoxError;
use mailslot_core::{HandlerError, Handoff, MessageId, Reason, Retry, Status, Verdict};
use mailslot_engine::{
    CircuitBreaker, EventKind, Lifecycle, Observer, OutcomeEvent, OutcomeSink, PublishingSink,
};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

cases![
    an_observer_sees_a_message_received_and_ended,
    an_observer_sees_each_end_of_a_delivery,
    an_observer_sees_what_blocks_a_session,
    an_observer_sees_a_message_that_killed_its_workers,
    an_observer_sees_the_circuit_change,
    an_observer_that_panics_or_hangs_changes_nothing,
    a_sink_hears_of_a_delivery_before_it_is_settled,
    a_sink_hears_of_a_stored_message_before_it_is_settled,
    a_sink_that_fails_panics_or_hangs_changes_nothing_and_is_counted,
    outcomes_are_published_where_that_is_wanted,
];

/// Passes on what it sees.
struct Watch(mpsc::UnboundedSender<Lifecycle>);

#[async_trait]
impl Observer for Watch {
    async fn notice(&self, event: &Lifecycle) {
        let _ = self.0.send(event.clone());
    }
}

/// What an observer has seen, as it comes.
struct Notices(mpsc::UnboundedReceiver<Lifecycle>);

fn watch() -> (Watch, Notices) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Watch(sender), Notices(receiver))
}

impl Notices {
    async fn next(&mut self) -> Lifecycle {
        self.0.recv().await.expect("the observer lives as long as the inbox")
    }

    /// The next end of a message.
    async fn end(&mut self) -> Arc<OutcomeEvent> {
        loop {
            if let Lifecycle::Ended(event) = self.next().await {
                return event;
            }
        }
    }
}

async fn an_observer_sees_a_message_received_and_ended(b: &Bench) {
    let (observer, mut notices) = watch();
    let worker = start_worker(b.builder().handler(fail).observer(observer));
    let id = accepted(&worker, 1).await.id;
    let Lifecycle::Received(received) = notices.next().await else { panic!("it is received first") };
    let ended = notices.end().await;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
    assert_eq!((received.subject.stored, received.attempt), (Some(id), 1));
    assert_eq!((ended.subject.clone(), ended.kind), (received.subject.clone(), EventKind::Failed));
    assert_eq!(ended.reason, Some(Reason::Failed));
    assert_eq!(ended.error.as_ref().map(mailslot_core::ErrorText::as_str), Some("the bank is closed"));
    assert_eq!(ended.contract.as_ref().map(ToString::to_string).as_deref(), Some("order@1"));
}

async fn by_note(order: Order) -> Result<Verdict, HandlerError> {
    match order.note.as_str() {
        "retry" => Err(HandlerError::retryable("the bank is closed")),
        "dead" => Ok(Verdict::dead_letter("no such account")),
        "skip" => Ok(Verdict::skip("not ours")),
        "handoff" => Ok(fine(Handoff::new("waits for the bank")).into()),
        _ => Ok(Verdict::complete()),
    }
}

async fn an_observer_sees_each_end_of_a_delivery(b: &Bench) {
    let rig = rig(b);
    let (observer, mut notices) = watch();
    let subscriber = start(rig.recognising(b.builder().handler(by_note).observer(observer)));
    let table = [
        ("fine", EventKind::Completed, None, 1),
        ("fine", EventKind::Skipped, Some(Reason::DuplicateDetected), 0),
        ("retry", EventKind::Failed, Some(Reason::Failed), 1),
        ("dead", EventKind::DeadLettered, Some(Reason::HandlerChoice), 1),
        ("skip", EventKind::Skipped, Some(Reason::HandlerChoice), 1),
        ("handoff", EventKind::Pending, None, 1),
        ("unknown", EventKind::Unsupported, Some(Reason::Unsupported), 0),
        ("nameless", EventKind::DeadLettered, Some(Reason::Undecodable), 0),
    ];
    for (note, kind, reason, attempt) in table {
        let mut message = BrokerMessage { payload: encoded(&noted(note)), ..sent(note, 1) };
        match note {
            "unknown" => drop(message.headers.insert(CONTRACT_HEADER.to_owned(), "nobody.knows".to_owned())),
            "nameless" => message.headers.clear(),
            _ => {}
        }
        rig.publish([message]).await;
        let ended = notices.end().await;
        assert_eq!((ended.kind, ended.reason, ended.attempt), (kind, reason, attempt), "{note}");
        assert_eq!(ended.subject.delivered.as_deref(), Some(note));
    }
    subscriber.stop().await;
}

async fn an_observer_sees_what_blocks_a_session(b: &Bench) {
    let rig = rig(b);
    let (observer, mut notices) = watch();
    let subscriber = start(rig.recognising(b.builder().handler(fail).observer(observer)));
    rig.publish([sent_in("s", "m1", 1), sent_in("s", "m2", 2)]).await;
    let first = notices.end().await;
    let second = notices.end().await;
    subscriber.stop().await;
    assert_eq!((first.kind, second.kind), (EventKind::Failed, EventKind::Deferred));
    assert_eq!(second.blocked_by, first.subject.stored);
    assert_eq!(second.session.as_ref().map(mailslot_core::SessionKey::as_str), Some("s"));
}

async fn an_observer_sees_a_message_that_killed_its_workers(b: &Bench) {
    let (handler, mut runs) = scripted();
    let once = || Retry::never();
    let dying = start_worker(b.builder().handler(handler).retry(once()));
    let id = accepted(&dying, 1).await.id;
    let run = runs.next().await;
    dying.kill().await;
    drop(run);
    b.advance(LEASE_SECONDS);
    let (observer, mut notices) = watch();
    let other = builder_on(b.other_process()).handler(succeed).retry(once()).observer(observer);
    let other = start_worker(other);
    let ended = notices.end().await;
    other.until(|stats| stats.dead_lettered == 1).await;
    other.stop().await;
    assert_eq!((ended.kind, ended.subject.stored), (EventKind::DeadLettered, Some(id)));
    assert_eq!(b.end(id).await, (Status::DeadLettered, Some(Reason::Crashed)));
}

async fn an_observer_sees_the_circuit_change(b: &Bench) {
    let (observer, mut notices) = watch();
    let breaker = CircuitBreaker::new(BreakerConfig { samples_min: 1, ..BreakerConfig::default() });
    let worker = start_worker(b.builder().handler(fail).circuit_breaker(breaker).observer(observer));
    accepted(&worker, 1).await;
    let circuit = loop {
        if let Lifecycle::Circuit { circuit, .. } = notices.next().await {
            break circuit;
        }
    };
    assert_eq!(circuit, Circuit::Open);
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
}

struct Panics;

#[async_trait]
impl Observer for Panics {
    async fn notice(&self, _: &Lifecycle) {
        panic!("the observer is broken");
    }
}

#[async_trait]
impl OutcomeSink for Panics {
    async fn tell(&self, _: &OutcomeEvent) -> Result<(), BoxError> {
        panic!("the sink is broken");
    }
}

struct Hangs;

#[async_trait]
impl Observer for Hangs {
    async fn notice(&self, _: &Lifecycle) {
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl OutcomeSink for Hangs {
    async fn tell(&self, _: &OutcomeEvent) -> Result<(), BoxError> {
        std::future::pending().await
    }
}

async fn an_observer_that_panics_or_hangs_changes_nothing(b: &Bench) {
    let rig = rig(b);
    let (observer, mut notices) = watch();
    let inbox = b.builder().handler(succeed).observer(Panics).observer(Hangs).observer(observer);
    let subscriber = start(rig.recognising(inbox));
    rig.publish((0..5).map(|number| sent(&number.to_string(), number))).await;
    for _ in 0..5 {
        assert_eq!(notices.end().await.kind, EventKind::Completed);
    }
    assert_eq!(subscriber.stop().await.handled, 5);
}

/// Says that it was told, and waits to be let go on.
struct Asks(mpsc::UnboundedSender<OutcomeEvent>, Arc<Notify>);

#[async_trait]
impl OutcomeSink for Asks {
    async fn tell(&self, event: &OutcomeEvent) -> Result<(), BoxError> {
        self.0.send(event.clone())?;
        self.1.notified().await;
        Ok(())
    }
}

fn asks() -> (Asks, mpsc::UnboundedReceiver<OutcomeEvent>, Arc<Notify>) {
    let ((sender, told), go_on) = (mpsc::unbounded_channel(), Arc::new(Notify::new()));
    (Asks(sender, Arc::clone(&go_on)), told, go_on)
}

async fn a_sink_hears_of_a_delivery_before_it_is_settled(b: &Bench) {
    let rig = rig(b);
    let (sink, mut told, go_on) = asks();
    let subscriber = start(rig.recognising(b.builder().handler(succeed).outcomes(sink)));
    rig.publish([sent("m1", 1)]).await;
    let event = told.recv().await.expect("the sink lives");
    assert_eq!((event.kind, rig.depth()), (EventKind::Completed, 1));
    go_on.notify_one();
    subscriber.until(|counts| counts.handled == 1).await;
    subscriber.stop().await;
    assert_eq!(rig.depth(), 0);
}

async fn a_sink_hears_of_a_stored_message_before_it_is_settled(b: &Bench) {
    let (sink, mut told, go_on) = asks();
    let worker = start_worker(b.builder().handler(succeed).outcomes(sink));
    let id: MessageId = accepted(&worker, 1).await.id;
    let event = told.recv().await.expect("the sink lives");
    assert_eq!((event.subject.stored, event.kind), (Some(id), EventKind::Completed));
    assert_eq!(b.status(id).await, Status::Leased);
    go_on.notify_one();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
}

struct Fails;

#[async_trait]
impl OutcomeSink for Fails {
    async fn tell(&self, _: &OutcomeEvent) -> Result<(), BoxError> {
        Err("the sink is full".into())
    }
}

async fn a_sink_that_fails_panics_or_hangs_changes_nothing_and_is_counted(b: &Bench) {
    let rig = rig(b);
    let inbox = b.builder().handler(succeed).outcomes(Fails).outcomes(Panics).outcomes(Hangs);
    let subscriber = start(rig.recognising(inbox));
    rig.publish([sent("m1", 1)]).await;
    subscriber.until(|counts| counts.handled == 1).await;
    fine(subscriber.inbox().watch().wait_for(|stats| stats.sinks_failed == 3).await);
    subscriber.stop().await;
    assert_eq!(rig.depth(), 0);
}

async fn outcomes_are_published_where_that_is_wanted(b: &Bench) {
    let rig = rig(b);
    let sink = PublishingSink::new(rig.broker.publisher(), "outcomes");
    let retry = Retry::never();
    let subscriber = start(rig.recognising(b.builder().handler(fail).retry(retry).outcomes(sink)));
    rig.publish([sent_in("s", "m1", 1)]).await;
    let outcomes = rig.broker.receiver("outcomes");
    let message = fine(outcomes.receive(1).await).remove(0).message;
    subscriber.until(|counts| counts.dead_lettered == 1).await;
    subscriber.stop().await;
    assert_eq!(message.headers[CONTRACT_HEADER], "mailslot.outcome@1");
    assert_eq!((message.session.as_deref(), message.correlation_id.as_deref()), (Some("s"), Some("m1")));
    let content = String::from_utf8_lossy(&message.payload);
    for part in [r#""outcome":"dead_lettered""#, r#""reason":"attempts_exhausted""#, r#""message_id":"m1""#] {
        assert!(content.contains(part), "{content}");
    }
}
