//! The memory broker passes the conformance suite for brokers.

use mailslot_core::broker::{MemoryBroker, Receiver};
use mailslot_testkit::broker::{self, Opened};
use std::sync::Arc;

const QUEUE: &str = "orders";

fn main() {
    broker::run("memory", || async {
        let broker = MemoryBroker::new();
        let (receivers, dead) = (broker.clone(), broker.clone());
        Opened {
            publisher: Arc::new(broker.publisher()),
            destination: QUEUE.into(),
            receiver: Box::new(move || {
                let receiver: Box<dyn Receiver> = Box::new(receivers.receiver(QUEUE));
                Box::pin(std::future::ready(receiver))
            }),
            dead_letters: Box::new(move || Box::pin(std::future::ready(dead.dead_letters(QUEUE)))),
        }
    })
}
