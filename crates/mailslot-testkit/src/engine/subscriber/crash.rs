//! A process that stops at every step of every flow, one after the other, and another one that goes on.
//!
//! Whatever the step: the message is handled, its handler has taken effect once more at most, nothing is left with the broker,
//! and a session keeps its order.

use super::super::bench::{Bench, builder_on, fine};
use super::super::journal::Journal;
use super::super::script::{Order, order};
use super::super::tap::TapStore;
use super::trace::Noted;
use super::{Running, encoded, sent, sent_in, start};
use crate::store::{Fixture, Opened};
use mailslot_core::broker::{BrokerMessage, MemoryBroker, Publisher as _};
use mailslot_core::store::{Change, Filter, Known, Question};
use mailslot_core::{
    Context, DeliveryIdentity, EndpointName, HandlerError, Handoff, ManualClock, MemoryStore, Retry, State,
    Status, Verdict,
};
use mailslot_engine::Deduplication;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

cases![
    a_process_may_stop_at_every_step_of_a_success,
    a_process_may_stop_at_every_step_of_a_claimed_success,
    a_process_may_stop_at_every_step_of_a_retry,
    a_process_may_stop_at_every_step_of_a_dead_letter_and_its_requeue,
    a_process_may_stop_at_every_step_of_a_skip,
    a_process_may_stop_at_every_step_of_a_handoff,
    a_process_may_stop_at_every_step_of_a_blocked_session,
    a_process_may_stop_at_every_step_of_a_stored_ingress,
];

/// A way of messages through a subscriber.
struct Flow {
    name: &'static str,
    claims: bool,
    stores: bool,
    /// How many messages there are, all in one session if there are several.
    messages: u32,
    /// What the handler does with the first message when it comes for the first time.
    first: First,
}

impl Flow {
    /// How often a message is handled if nobody stops.
    fn planned(&self, number: u32) -> usize {
        let twice = number == 1 && matches!(self.first, First::Fails | First::Dies);
        if twice { 2 } else { 1 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Succeeds,
    Fails,
    Dies,
    Skips,
    HandsOff,
}

const FLOWS: [Flow; 8] = [
    Flow { name: "success", claims: false, stores: false, messages: 1, first: First::Succeeds },
    Flow { name: "success, claimed", claims: true, stores: false, messages: 1, first: First::Succeeds },
    Flow { name: "retry", claims: false, stores: false, messages: 1, first: First::Fails },
    Flow { name: "dead letter, requeued", claims: false, stores: false, messages: 1, first: First::Dies },
    Flow { name: "skip", claims: false, stores: false, messages: 1, first: First::Skips },
    Flow { name: "handoff, completed", claims: false, stores: false, messages: 1, first: First::HandsOff },
    Flow { name: "blocked session", claims: false, stores: false, messages: 3, first: First::Fails },
    Flow { name: "stored ingress", claims: false, stores: true, messages: 1, first: First::Succeeds },
];

/// What the handlers of all processes have done.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<Vec<u32>>>);

impl Effects {
    fn add(&self, number: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    fn all(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn of(&self, number: u32) -> usize {
        self.all().into_iter().filter(|other| *other == number).count()
    }
}

async fn handle(
    order: Order,
    context: Context,
    State(journal): State<Journal>,
    State(effects): State<Effects>,
    State(first): State<FirstOnly>,
) -> Result<Verdict, HandlerError> {
    journal.step("handler, before its effect").await;
    effects.add(order.number);
    journal.step("handler, after its effect").await;
    let attempt = context.attempt();
    if order.number > 1 || attempt.number > 1 || attempt.generation > 0 {
        return Ok(Verdict::complete());
    }
    match first.0 {
        First::Succeeds => Ok(Verdict::complete()),
        First::Fails => Err(HandlerError::retryable("the bank is closed")),
        First::Dies => Err(HandlerError::permanent("no such account")),
        First::Skips => Ok(Verdict::skip("not ours")),
        First::HandsOff => Ok(fine(Handoff::new("waits for the bank")).into()),
    }
}

/// What the first message meets.
#[derive(Debug, Clone, Copy)]
struct FirstOnly(First);

/// One run of a flow, on an endpoint of its own.
struct Passage<'a> {
    bench: &'a Bench,
    flow: &'a Flow,
    endpoint: String,
    broker: MemoryBroker,
    effects: Effects,
}

const QUEUE: &str = "orders";

impl Passage<'_> {
    /// A process that works on the flow, and its journal.
    fn process(&self) -> (Running, Journal) {
        let tap: TapStore = self.bench.other_process();
        let journal = tap.journal().clone();
        let inbox = builder_on(tap)
            .endpoint(&self.endpoint)
            .handler(handle)
            .state(journal.clone())
            .state(self.effects.clone())
            .state(FirstOnly(self.flow.first))
            .retry(Retry::fixed(Duration::from_secs(10)).jitter(false).max_attempts(5));
        let dedup = Deduplication::new();
        let dedup = if self.flow.claims { dedup.claim(Duration::from_secs(60)) } else { dedup };
        let receiver = Noted(self.broker.receiver(QUEUE), journal.clone());
        let subscriber = inbox.subscribe(receiver).dedup(dedup);
        (start(if self.flow.stores { subscriber.stored() } else { subscriber }), journal)
    }

    fn messages(&self) -> Vec<BrokerMessage> {
        let message = |number: u32| match self.flow.messages {
            1 => sent(&number.to_string(), number),
            _ => sent_in("s", &number.to_string(), number),
        };
        let with_content = |number| BrokerMessage { payload: encoded(&order(number)), ..message(number) };
        (1..=self.flow.messages).map(with_content).collect()
    }

    async fn publish(&self) {
        let published = self.broker.publisher().publish(QUEUE, self.messages()).await;
        published.into_iter().for_each(fine);
    }

    async fn known(&self, number: u32) -> Option<Known> {
        let endpoint = fine(EndpointName::new(&self.endpoint));
        let identity = fine(DeliveryIdentity::new(&endpoint, Some(&number.to_string())));
        let question = Question { identity: Some(identity), session: None };
        fine(self.bench.store.look_up(&[question]).await).remove(0).known
    }

    /// Does what an operator would do with the first message, and says whether the flow is over.
    async fn is_over(&self) -> bool {
        if let Some(Known::Stored { id, status }) = self.known(1).await {
            let filter = Filter { ids: Some(vec![id]), ..Filter::default() };
            match status {
                Status::DeadLettered => {
                    fine(self.bench.store.change(Change::Requeue, &filter, 1).await);
                }
                Status::Suspended => {
                    let completed = mailslot_core::store::HandoffResult::Completed;
                    fine(self.bench.store.settle_handoff(id, completed).await);
                }
                _ => {}
            }
        }
        for number in 1..=self.flow.messages {
            let ended = match self.known(number).await {
                Some(Known::Stored { status, .. }) => status.is_terminal() && status != Status::DeadLettered,
                known => known == Some(Known::Completed),
            };
            if !ended {
                return false;
            }
        }
        self.broker.depth(QUEUE) == 0
    }

    /// Lets time pass until the flow is over.
    async fn finish(&self) {
        while !self.is_over().await {
            self.bench.advance(5);
            self.broker.wake();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Runs the flow with a process that stops at this step. `false`: it was over before.
    async fn stop_at(&self, step: &str, nth: usize) -> bool {
        let (subscriber, journal) = self.process();
        subscriber.is(mailslot_engine::SubscriberState::Receiving).await;
        journal.stop_at(step, nth);
        self.publish().await;
        let has_stopped = tokio::select! {
            biased;
            () = journal.stopped() => true,
            () = self.finish() => false,
        };
        if has_stopped {
            subscriber.kill().await;
        } else {
            subscriber.stop().await;
        }
        // As the end of a process closes its connections.
        self.broker.cut();
        self.broker.mend();
        has_stopped
    }

    /// What the other process finds is brought to its end, and a redelivery of everything changes nothing.
    async fn recover(&self) {
        let (subscriber, _) = self.process();
        self.finish().await;
        let effects = self.effects.all();
        self.publish().await;
        self.finish().await;
        subscriber.stop().await;
        assert_eq!(self.effects.all(), effects, "a redelivery is handled no more");
    }

    fn check(&self, stopped_at: &str) {
        let effects = self.effects.all();
        for number in 1..=self.flow.messages {
            let (times, planned) = (self.effects.of(number), self.flow.planned(number));
            let context = format!("{}: stopped at {stopped_at}: {effects:?}", self.flow.name);
            assert!(times >= 1 && times <= planned + 1, "{context}");
        }
        let mut in_order = effects.clone();
        in_order.dedup();
        in_order.dedup();
        let is_sorted = in_order.windows(2).all(|pair| pair[0] <= pair[1]);
        assert!(is_sorted, "{}: stopped at {stopped_at}: {effects:?}", self.flow.name);
    }
}

/// A step, the how manieth of its kind, and how often the handler of the first message took effect in all when the process
/// stopped there.
#[derive(Debug)]
struct Row {
    step: &'static str,
    nth: usize,
    runs: usize,
}

/// Stops a process at each step of a flow in turn: the first and the second of each kind, where there is one.
async fn stop_everywhere(bench: &Bench, flow: &Flow) -> Vec<Row> {
    let mut rows = Vec::new();
    for nth in 1..=2 {
        for step in STEPS {
            let broker = MemoryBroker::with_clock(Arc::clone(&bench.clock));
            let endpoint = format!("{} {nth} {step}", flow.name);
            let passage = Passage { bench, flow, endpoint, broker, effects: Effects::default() };
            let has_stopped = passage.stop_at(step, nth).await;
            passage.recover().await;
            passage.check(step);
            if has_stopped {
                rows.push(Row { step, nth, runs: passage.effects.of(1) });
            }
        }
    }
    rows
}

async fn run(b: &Bench, place: usize) {
    let rows = stop_everywhere(b, &FLOWS[place]).await;
    assert!(rows.len() >= 4, "{rows:?}");
}

async fn a_process_may_stop_at_every_step_of_a_success(b: &Bench) {
    run(b, 0).await;
}

async fn a_process_may_stop_at_every_step_of_a_claimed_success(b: &Bench) {
    run(b, 1).await;
}

async fn a_process_may_stop_at_every_step_of_a_retry(b: &Bench) {
    run(b, 2).await;
}

async fn a_process_may_stop_at_every_step_of_a_dead_letter_and_its_requeue(b: &Bench) {
    run(b, 3).await;
}

async fn a_process_may_stop_at_every_step_of_a_skip(b: &Bench) {
    run(b, 4).await;
}

async fn a_process_may_stop_at_every_step_of_a_handoff(b: &Bench) {
    run(b, 5).await;
}

async fn a_process_may_stop_at_every_step_of_a_blocked_session(b: &Bench) {
    run(b, 6).await;
}

async fn a_process_may_stop_at_every_step_of_a_stored_ingress(b: &Bench) {
    run(b, 7).await;
}

/// The steps of a delivery, and of the stored message that it becomes.
const STEPS: [&str; 10] = [
    "look up: asked",
    "look up: done",
    "claim: asked",
    "claim: done",
    "handler, before its effect",
    "handler, after its effect",
    "conclude: asked",
    "conclude: done",
    "acknowledge: asked",
    "acknowledge: done",
];

/// What covers the message when its process stops at a step.
fn cover(step: &str, runs: usize, planned: usize) -> &'static str {
    if runs > planned {
        return "it is handled again: make its handler repeatable, or let it write in the store's transaction";
    }
    match step {
        "acknowledge: asked" | "acknowledge: done" | "conclude: done" => {
            "what it has come to is stored: a redelivery is recognised, and workers go on from there"
        }
        _ => "the broker delivers it again, or the lease of its worker runs out, and it is handled",
    }
}

/// The page about every step of a flow with one message, made by stopping a process there, over the memory store.
pub async fn crash_points_markdown() -> String {
    let mut page = String::from(
        "# Where a subscriber may stop\n\n\
         Made by stopping a process at each step of each flow (`crates/mailslot-testkit/src/engine/subscriber/crash.rs`), which is\n\
         done over every store; a test compares this page with what happens over the memory store. *asked*: the call has not\n\
         reached the store or the broker. *done*: it has taken effect, and its answer is lost. After each stop another process\n\
         goes on, and then every message is delivered once more, which changes nothing.\n",
    );
    for flow in FLOWS.iter().filter(|flow| flow.messages == 1) {
        let clock = Arc::new(ManualClock::default());
        let store = MemoryStore::with_clock(clock.clone());
        let bench = Bench::new(Fixture::new(Opened::new(store), clock), None);
        section(&mut page, flow, stop_everywhere(&bench, flow).await);
    }
    page
}

fn section(page: &mut String, flow: &Flow, rows: Vec<Row>) {
    let planned = flow.planned(1);
    let title = format!(
        "\n## {}\n\n| It stops at | The handler took effect | What covers it |\n|---|---|---|\n",
        flow.name
    );
    page.push_str(&title);
    for Row { step, nth, runs } in rows {
        let again = if nth > 1 { " (of the stored message)" } else { "" };
        let times = if runs == 1 { "once".to_owned() } else { format!("{runs} times") };
        let _ = writeln!(page, "| {step}{again} | {times} | {} |", cover(step, runs, planned));
    }
}
