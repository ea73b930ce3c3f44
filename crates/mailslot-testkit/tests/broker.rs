//! The memory broker passes the conformance suite for brokers.

use jiff::SignedDuration;
use mailslot_core::broker::{MemoryBroker, Receiver};
use mailslot_core::{Clock as _, ManualClock};
use mailslot_testkit::broker::{self, Opened};
use std::sync::Arc;

const QUEUE: &str = "orders";

fn main() {
    broker::run("memory", || async {
        let clock = Arc::new(ManualClock::default());
        let broker = MemoryBroker::with_clock(Arc::clone(&clock));
        let (time, waking) = (Arc::clone(&clock), broker.clone());
        let (receivers, dead) = (broker.clone(), broker.clone());
        Opened {
            publisher: Arc::new(broker.publisher()),
            destination: QUEUE.into(),
            receiver: Box::new(move || {
                let receiver: Box<dyn Receiver> = Box::new(receivers.receiver(QUEUE));
                Box::pin(std::future::ready(receiver))
            }),
            now: Box::new(move || time.now()),
            pass: Box::new(move |time| {
                clock.advance(SignedDuration::try_from(time).expect("it is short"));
                waking.wake();
                Box::pin(std::future::ready(()))
            }),
            dead_letters: Box::new(move || Box::pin(std::future::ready(dead.dead_letters(QUEUE)))),
        }
    })
}
