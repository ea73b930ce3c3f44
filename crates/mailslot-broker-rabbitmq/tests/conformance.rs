//! Both kinds of queue pass the conformance suite for brokers, on the shared server.

use libtest_mimic::Arguments;
use mailslot_broker_rabbitmq::{Queue, QueueKind, REASON_HEADER, RabbitMq};
use mailslot_core::broker::{BrokerMessage, BrokerSettlement, Receiver};
use mailslot_testkit::broker::{self, DeadLetter, Opened};
use mailslot_testkit::servers;
use std::sync::Arc;
use std::time::Duration;

fn main() {
    let trials = [("quorum", QueueKind::Quorum), ("classic", QueueKind::Classic)]
        .into_iter()
        .flat_map(|(name, kind)| broker::trials(name, move || open(kind)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

/// A queue of the case's own. It is declared before anything is published to it.
async fn open(kind: QueueKind) -> Opened {
    let rabbit = RabbitMq::new(&servers::rabbitmq()).expect("the URL is one");
    let name = servers::fresh_schema();
    let queue = Queue::new(&name).expect("the name is short").kind(kind).prefetch(100);
    rabbit.receiver(queue.clone()).open().await.expect("the queue is declared");
    let (receivers, dead) = (rabbit.clone(), rabbit.clone());
    let dead_queue = Queue::new(format!("{name}.dead-letters")).expect("it is short").only_checked();
    Opened {
        publisher: Arc::new(rabbit.publisher()),
        destination: name,
        receiver: Box::new(move || {
            let receiver = receivers.receiver(queue.clone());
            Box::pin(async move {
                receiver.open().await.expect("the queue is there");
                Box::new(receiver) as Box<dyn Receiver>
            })
        }),
        now: Box::new(jiff::Timestamp::now),
        pass: Box::new(|time: Duration| Box::pin(tokio::time::sleep(time))),
        dead_letters: Box::new(move || Box::pin(read_dead_letters(dead.receiver(dead_queue.clone())))),
    }
}

/// The one dead letter that a case makes.
async fn read_dead_letters(receiver: impl Receiver) -> Vec<DeadLetter> {
    let deliveries = receiver.receive(10).await.expect("a dead letter is there");
    let tags = deliveries.iter().map(|delivery| (delivery.tag, BrokerSettlement::Ack)).collect();
    receiver.settle(tags).await.into_iter().for_each(|settled| settled.expect("it is taken"));
    let read = |mut message: BrokerMessage| {
        let reason = message.headers.remove(REASON_HEADER).expect("it has a reason");
        (message, reason)
    };
    deliveries.into_iter().map(|delivery| read(delivery.message)).collect()
}
