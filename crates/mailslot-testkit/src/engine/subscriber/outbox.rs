//! Publishing: an endpoint that gives its messages to a broker, and handlers that publish.

use super::super::bench::{Bench, RETRY_SECONDS, fine, start as start_worker};
use super::super::script::{Order, Refund, order};
use super::{rig, start};
use mailslot_core::broker::{BrokerMessage, BrokerSettlement, MemoryPublisher, Receiver as _};
use mailslot_core::{Context, EffectId, HandlerError, State, Status};
use mailslot_engine::{Deduplication, Dispatcher, HandlerOptions, publish_from_context};

cases![
    what_is_accepted_is_published_as_it_is_stored,
    a_session_is_published_in_its_order,
    a_broker_that_is_away_is_tried_again,
    what_is_published_can_be_subscribed_to,
    a_handler_that_runs_again_publishes_under_the_same_id,
];

async fn take(rig: &super::Rig<'_>, queue: &str, count: usize) -> Vec<BrokerMessage> {
    let receiver = rig.broker.receiver(queue);
    let mut messages = Vec::new();
    while messages.len() < count {
        for delivery in fine(receiver.receive(count).await) {
            receiver.settle(vec![(delivery.tag, BrokerSettlement::Ack)]).await.into_iter().for_each(fine);
            messages.push(delivery.message);
        }
    }
    messages
}

fn dispatcher(rig: &super::Rig<'_>) -> Dispatcher {
    Dispatcher::new(rig.broker.publisher(), super::QUEUE)
}

async fn what_is_accepted_is_published_as_it_is_stored(b: &Bench) {
    let rig = rig(b);
    let handler = dispatcher(&rig).handler();
    let outbox = b.builder().contract::<Order>().raw_handler_for(|_| true, handler, HandlerOptions::new());
    let worker = start_worker(outbox);
    let accept = worker.accept(&order(7)).session("s").correlation("c").header("a", "b");
    let id = fine(accept.await).id;
    let message = take(&rig, super::QUEUE, 1).await.remove(0);
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!(message.message_id, Some(id.to_string()));
    assert_eq!((message.session.as_deref(), message.correlation_id.as_deref()), (Some("s"), Some("c")));
    assert_eq!(message.headers["a"], "b");
    assert_eq!(message.payload, super::encoded(&order(7)));
}

async fn a_session_is_published_in_its_order(b: &Bench) {
    let rig = rig(b);
    let handler = dispatcher(&rig).handler();
    let worker = start_worker(b.builder().contract::<Order>().raw_handler_for(
        |_| true,
        handler,
        HandlerOptions::new(),
    ));
    for number in 0..20 {
        worker.order_in("s", number).await;
    }
    let messages = take(&rig, super::QUEUE, 20).await;
    worker.until(|stats| stats.completed == 20).await;
    worker.stop().await;
    let expected: Vec<_> = (0..20).map(|number| super::encoded(&order(number))).collect();
    assert_eq!(messages.into_iter().map(|message| message.payload).collect::<Vec<_>>(), expected);
}

async fn a_broker_that_is_away_is_tried_again(b: &Bench) {
    let rig = rig(b);
    rig.broker.cut();
    let handler = dispatcher(&rig).handler();
    let worker = start_worker(b.builder().contract::<Order>().raw_handler_for(
        |_| true,
        handler,
        HandlerOptions::new(),
    ));
    let id = worker.order(1).await;
    worker.until(|stats| stats.retried == 1).await;
    rig.broker.mend();
    b.advance(RETRY_SECONDS);
    worker.wake();
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!((b.status(id).await, rig.depth()), (Status::Completed, 1));
}

async fn what_is_published_can_be_subscribed_to(b: &Bench) {
    let rig = rig(b);
    let handler = dispatcher(&rig).handler();
    let outbox = b.builder().endpoint("outbox").contract::<Order>();
    let worker = start_worker(outbox.raw_handler_for(|_| true, handler, HandlerOptions::new()));
    let seen = |_: Order, context: Context| async move {
        assert_eq!(context.envelope().endpoint.as_str(), "billing");
    };
    let inbox = rig.elsewhere().endpoint("billing").handler(seen);
    let subscriber = start(rig.subscribe(inbox).dedup(Deduplication::new()));
    worker.order(1).await;
    subscriber.until(|counts| counts.handled == 1).await;
    subscriber.stop().await;
    worker.stop().await;
}

async fn refund(
    order: Order,
    context: Context,
    State(publisher): State<MemoryPublisher>,
) -> Result<(), HandlerError> {
    let effect = EffectId::new(&format!("order {}", order.number), "refunded", 0)?;
    let refund = Refund { number: order.number };
    publish_from_context(&publisher, "refunds", &context, &refund, &effect).await?;
    if context.attempt().number == 1 { Err("the process is about to die".into()) } else { Ok(()) }
}

async fn a_handler_that_runs_again_publishes_under_the_same_id(b: &Bench) {
    let rig = rig(b);
    let worker = start_worker(b.builder().handler(refund).state(rig.broker.publisher()));
    let id = worker.order(1).await;
    worker.until(|stats| stats.retried == 1).await;
    b.pass_retry(&worker);
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    let [first, second] = <[BrokerMessage; 2]>::try_from(take(&rig, "refunds", 2).await).expect("two");
    assert_eq!(first, second);
    assert_eq!(first.message_id, Some(fine(EffectId::new("order 1", "refunded", 0)).to_string()));
    assert_eq!(first.headers["mailslot-causation"], id.to_string());
    assert_eq!(first.correlation_id, Some(id.to_string()), "the conversation begins with the message");
}
