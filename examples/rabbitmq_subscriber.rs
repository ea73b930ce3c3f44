//! A subscriber on a real RabbitMQ: publish, handle, redeliver, skip; fail, park, resubmit, drain.
//!
//! `cargo run -p mailslot --features rabbitmq --example rabbitmq_subscriber -- amqp://guest:guest@127.0.0.1:5672/%2f`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::Context as _;
use mailslot::broker::{BrokerMessage, NativeMapping, Publisher};
use mailslot::rabbitmq::{Queue, RabbitMq};
use mailslot::store::Filter;
use mailslot::{
    Attempt, Deduplication, HandlerError, Inbox, MemoryStore, Message, Metadata, NewMessage, SessionKey,
    State, Status, Subscriber,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where the example tells what happens: the terminal, or a test.
type Say = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "orders.placed", version = 1)]
struct OrderPlaced {
    number: u32,
}

/// Order 2 names an account that does not exist until somebody has made it, which is before its second generation.
async fn bill(order: OrderPlaced, attempt: Attempt, State(say): State<Say>) -> Result<(), HandlerError> {
    if order.number == 2 && attempt.generation == 0 {
        say("order 2 fails: no such account".into());
        return Err(HandlerError::permanent("no such account"));
    }
    say(format!("order {} is billed", order.number));
    Ok(())
}

pub(crate) async fn run(url: &str, queue: &str, say: Say) -> anyhow::Result<()> {
    let rabbit = RabbitMq::new(url)?;
    // In memory, so it is forgotten with the process. Use SQLite or PostgreSQL where a restart must not matter.
    let subscriber = Inbox::builder(MemoryStore::new())
        .endpoint("billing")
        .handler(bill)
        .state(say.clone())
        .subscribe(rabbit.receiver(Queue::new(queue)?))
        .dedup(Deduplication::new())
        .build()?;

    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = subscriber.run(async { drop(stopped.await) });
    let shown = async {
        let shown = show(&subscriber, &rabbit.publisher(), queue, &say).await;
        drop(stop);
        shown
    };
    let (ran, shown) = tokio::join!(running, shown);
    ran?;
    shown
}

async fn show(
    subscriber: &Subscriber<MemoryStore>,
    publisher: &impl Publisher,
    queue: &str,
    say: &Say,
) -> anyhow::Result<()> {
    let mut counts = subscriber.watch();
    // The queue is declared by the subscriber, which has to be there first.
    subscriber.state().wait_for(|state| *state == mailslot::SubscriberState::Receiving).await?;

    // The same message id twice: the second delivery is recognised, whatever made it come again.
    publish(publisher, queue, "m1", None, 1).await?;
    publish(publisher, queue, "m1", None, 1).await?;
    let seen = *counts.wait_for(|counts| counts.handled + counts.duplicates == 2).await?;
    say(format!("handled {}, skipped {} redelivery", seen.handled, seen.duplicates));

    // A session keeps its order: what is behind the failed one is parked, and nothing is lost.
    let mut stats = subscriber.inbox().watch();
    for number in 2..=4 {
        publish(publisher, queue, &format!("m{number}"), Some("customer 7"), number).await?;
    }
    stats.wait_for(|stats| stats.dead_lettered == 1).await?;
    counts.wait_for(|counts| counts.deferred + counts.parked == 3).await?;
    let operator = subscriber.inbox().operator();
    let parked = operator.sessions(true, 10).await?.first().map_or(0, |session| session.parked);
    say(format!("one session is blocked, {parked} orders wait in it"));

    // Somebody mends the cause and resubmits; the others follow in their order.
    let dead = Filter { statuses: Some(vec![Status::DeadLettered]), ..Filter::default() };
    operator.requeue(&dead).await?;
    stats.wait_for(|stats| stats.completed == 3).await?;
    say("the session is drained".into());
    Ok(())
}

async fn publish(
    publisher: &impl Publisher,
    queue: &str,
    id: &str,
    session: Option<&str>,
    number: u32,
) -> anyhow::Result<()> {
    let session = session.map(SessionKey::new).transpose()?;
    let order = NewMessage::encode(&OrderPlaced { number }, Metadata { session, ..Metadata::default() })?;
    let message: BrokerMessage = NativeMapping::write(&order.contract, &order.payload, &order.metadata, id);
    let mut answers = publisher.publish(queue, vec![message]).await;
    // `Ok` means that RabbitMQ has it, in a queue.
    Ok(answers.pop().context("one message has one answer")??)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("give the URL of a RabbitMQ as the only argument")?;
    run(&url, "mailslot-example", Arc::new(|line| println!("{line}"))).await
}
