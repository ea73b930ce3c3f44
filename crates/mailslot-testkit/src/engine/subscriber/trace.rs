//! The order of work, step by step: what happens, what happens before what, and what does not happen at all.

use super::super::bench::{Bench, fine};
use super::super::journal::Journal;
use super::super::script::{Order, noted};
use super::super::tap::Call;
use super::{Rig, encoded, rig, sent, sent_in, start};
use async_trait::async_trait;
use mailslot_core::broker::{
    BrokerCapabilities, BrokerDelivery, BrokerError, BrokerMessage, BrokerSettlement, CONTRACT_HEADER,
    DeliveryTag, MemoryReceiver, Receiver,
};
use mailslot_core::handler::BoxError;
use mailslot_core::{HandlerError, Handoff, State, StoreErrorKind, Verdict};
use mailslot_engine::{
    Deduplication, HEARTBEAT_CONTRACT, InboxBuilder, OutcomeEvent, OutcomeSink, SubscriberBuilder,
    SubscriberState,
};
use std::time::Duration;

cases![
    a_fresh_delivery_is_looked_up_handled_recorded_told_and_settled,
    a_duplicate_is_told_and_settled_and_nothing_else,
    every_other_verdict_is_stored_told_and_settled,
    a_parked_delivery_runs_no_handler,
    a_redelivery_of_what_is_stored_is_settled_and_nothing_else,
    a_heartbeat_asks_nobody,
    a_message_without_a_handler_is_stored_without_a_look_up,
    what_cannot_be_read_asks_nobody,
    without_an_id_only_the_handler_runs,
    a_claim_comes_between_look_up_and_handler,
    a_failed_look_up_runs_no_handler_and_tells_nobody,
    a_failed_record_tells_nobody,
];

/// Notes what the broker is told.
pub(super) struct Noted(pub(super) MemoryReceiver, pub(super) Journal);

#[async_trait]
impl Receiver for Noted {
    fn capabilities(&self) -> BrokerCapabilities {
        self.0.capabilities()
    }

    async fn open(&self) -> Result<(), BrokerError> {
        self.0.open().await
    }

    async fn receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError> {
        self.0.receive(max).await
    }

    async fn settle(
        &self,
        settlements: Vec<(DeliveryTag, BrokerSettlement)>,
    ) -> Vec<Result<(), BrokerError>> {
        let name = match &settlements[0].1 {
            BrokerSettlement::Ack => "acknowledge",
            BrokerSettlement::Return { .. } => "return",
            BrokerSettlement::DeadLetter { .. } => "dead-letter",
        };
        self.1.step(format!("{name}: asked")).await;
        let settled = self.0.settle(settlements).await;
        self.1.step(format!("{name}: done")).await;
        settled
    }
}

struct NotedOutcome(Journal);

#[async_trait]
impl OutcomeSink for NotedOutcome {
    async fn tell(&self, event: &OutcomeEvent) -> Result<(), BoxError> {
        self.0.step(format!("tell: {}", event.kind)).await;
        Ok(())
    }
}

async fn by_note(order: Order, State(journal): State<Journal>) -> Result<Verdict, HandlerError> {
    journal.step("handler").await;
    match order.note.as_str() {
        "retry" => Err(HandlerError::retryable("the bank is closed")),
        "dead" => Ok(Verdict::dead_letter("no such account")),
        "skip" => Ok(Verdict::skip("not ours")),
        "handoff" => Ok(fine(Handoff::new("waits for the bank")).into()),
        _ => Ok(Verdict::complete()),
    }
}

/// A subscriber of which every step is noted.
fn noting(rig: &Rig<'_>, dedup: Deduplication) -> SubscriberBuilder<super::TapStore> {
    let journal = rig.bench.tap.journal();
    let inbox: InboxBuilder<_> = rig.bench.builder().handler(by_note).state(journal.clone());
    let inbox = inbox.outcomes(NotedOutcome(journal.clone()));
    inbox.subscribe(Noted(rig.receiver(), journal.clone())).dedup(dedup)
}

fn saying(message_id: &str, note: &str) -> BrokerMessage {
    BrokerMessage { payload: encoded(&noted(note)), ..sent(message_id, 1) }
}

const LOOKED_UP: [&str; 2] = ["look up: asked", "look up: done"];
const CONCLUDED: [&str; 2] = ["conclude: asked", "conclude: done"];
const ACKNOWLEDGED: [&str; 2] = ["acknowledge: asked", "acknowledge: done"];

/// Publishes a message after others that were done with, and gives the steps of its own.
async fn steps(rig: &Rig<'_>, before: Vec<BrokerMessage>, message: BrokerMessage) -> Vec<String> {
    steps_with(rig, Deduplication::new(), before, message).await
}

async fn steps_with(
    rig: &Rig<'_>,
    dedup: Deduplication,
    before: Vec<BrokerMessage>,
    message: BrokerMessage,
) -> Vec<String> {
    let subscriber = start(noting(rig, dedup));
    // The start has asked the store once.
    subscriber.is(SubscriberState::Receiving).await;
    for earlier in before {
        rig.publish([earlier]).await;
        settled(rig).await;
    }
    let begun = rig.bench.tap.journal().steps().len();
    rig.publish([message]).await;
    settled(rig).await;
    let steps = rig.bench.tap.journal().steps()[begun..].to_vec();
    subscriber.stop().await;
    steps
}

/// Waits until the broker has nothing left.
async fn settled(rig: &Rig<'_>) {
    while rig.depth() > 0 || !is_quiet(rig) {
        tokio::task::yield_now().await;
    }
}

/// Whether the last step is over.
fn is_quiet(rig: &Rig<'_>) -> bool {
    let steps = rig.bench.tap.journal().steps();
    steps
        .last()
        .is_some_and(|last| last.starts_with("acknowledge: done") || last.starts_with("dead-letter: done"))
}

fn all(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().into_iter().map(str::to_owned).collect()
}

async fn a_fresh_delivery_is_looked_up_handled_recorded_told_and_settled(b: &Bench) {
    let found = steps(&rig(b), vec![], saying("m1", "")).await;
    assert_eq!(found, all(&[&LOOKED_UP, &["handler"], &CONCLUDED, &["tell: completed"], &ACKNOWLEDGED]));
}

async fn a_duplicate_is_told_and_settled_and_nothing_else(b: &Bench) {
    let found = steps(&rig(b), vec![saying("m1", "")], saying("m1", "")).await;
    assert_eq!(found, all(&[&LOOKED_UP, &["tell: skipped"], &ACKNOWLEDGED]));
}

async fn every_other_verdict_is_stored_told_and_settled(b: &Bench) {
    let rig = rig(b);
    for (note, told) in
        [("retry", "failed"), ("dead", "dead_lettered"), ("skip", "skipped"), ("handoff", "pending")]
    {
        let found = steps(&rig, vec![saying("first", "")], saying(note, note)).await;
        let told = format!("tell: {told}");
        assert_eq!(found, all(&[&LOOKED_UP, &["handler"], &CONCLUDED, &[told.as_str()], &ACKNOWLEDGED]));
    }
}

async fn a_parked_delivery_runs_no_handler(b: &Bench) {
    let dead = BrokerMessage { payload: encoded(&noted("dead")), ..sent_in("s", "m1", 1) };
    let found = steps(&rig(b), vec![dead], sent_in("s", "m2", 2)).await;
    assert_eq!(found, all(&[&LOOKED_UP, &CONCLUDED, &["tell: deferred"], &ACKNOWLEDGED]));
}

async fn a_redelivery_of_what_is_stored_is_settled_and_nothing_else(b: &Bench) {
    let found = steps(&rig(b), vec![saying("m1", "dead")], saying("m1", "dead")).await;
    assert_eq!(found, all(&[&LOOKED_UP, &ACKNOWLEDGED]), "no later word replaces what operators work from");
}

async fn a_heartbeat_asks_nobody(b: &Bench) {
    let mut probe = sent("m1", 1);
    probe.headers.insert(CONTRACT_HEADER.to_owned(), HEARTBEAT_CONTRACT.to_owned());
    assert_eq!(steps(&rig(b), vec![saying("first", "")], probe).await, all(&[&ACKNOWLEDGED]));
}

async fn a_message_without_a_handler_is_stored_without_a_look_up(b: &Bench) {
    let mut unknown = sent("m1", 1);
    unknown.headers.insert(CONTRACT_HEADER.to_owned(), "nobody.knows".to_owned());
    let found = steps(&rig(b), vec![saying("first", "")], unknown).await;
    assert_eq!(found, all(&[&CONCLUDED, &["tell: unsupported"], &ACKNOWLEDGED]));
}

async fn what_cannot_be_read_asks_nobody(b: &Bench) {
    let mut nameless = sent("m1", 1);
    nameless.headers.clear();
    let found = steps(&rig(b), vec![saying("first", "")], nameless).await;
    assert_eq!(found, all(&[&["tell: dead_lettered", "dead-letter: asked", "dead-letter: done"]]));
}

async fn without_an_id_only_the_handler_runs(b: &Bench) {
    let nameless = BrokerMessage { message_id: None, ..sent("", 1) };
    let found = steps(&rig(b), vec![saying("first", "")], nameless).await;
    assert_eq!(found, all(&[&["handler", "tell: completed"], &ACKNOWLEDGED]));
}

async fn a_claim_comes_between_look_up_and_handler(b: &Bench) {
    let claiming = Deduplication::new().claim(Duration::from_secs(24 * 3600));
    let found = steps_with(&rig(b), claiming, vec![saying("first", "")], saying("m1", "")).await;
    let claimed = ["claim: asked", "claim: done"];
    let expected =
        all(&[&LOOKED_UP, &claimed, &["handler"], &CONCLUDED, &["tell: completed"], &ACKNOWLEDGED]);
    assert_eq!(found, expected);
}

/// The steps of a delivery until it went back, while a call fails.
async fn failing(rig: &Rig<'_>, call: Call) -> Vec<String> {
    let subscriber = start(noting(rig, Deduplication::new()));
    rig.publish([saying("first", "")]).await;
    settled(rig).await;
    rig.bench.tap.fail(call, StoreErrorKind::Unavailable);
    let begun = rig.bench.tap.journal().steps().len();
    rig.publish([saying("m1", "")]).await;
    subscriber.until(|counts| counts.returned == 1).await;
    subscriber.stop().await;
    let steps = rig.bench.tap.journal().steps();
    let end = steps.iter().position(|step| step == "return: done").expect("it went back");
    steps[begun..=end].to_vec()
}

const RETURNED: [&str; 2] = ["return: asked", "return: done"];

async fn a_failed_look_up_runs_no_handler_and_tells_nobody(b: &Bench) {
    let found = failing(&rig(b), Call::LookUp).await;
    assert_eq!(found, all(&[&["look up: asked", "look up: failed"], &RETURNED]));
}

async fn a_failed_record_tells_nobody(b: &Bench) {
    let found = failing(&rig(b), Call::Conclude).await;
    let concluded = ["conclude: asked", "conclude: failed"];
    assert_eq!(found, all(&[&LOOKED_UP, &["handler"], &concluded, &RETURNED]));
}
