//! What only RabbitMQ does: connections that are lost, queues that are not what they should be, messages that nobody takes.

use libtest_mimic::{Arguments, Failed, Trial};
use mailslot_broker_rabbitmq::{DeadLetters, Queue, QueueKind, RabbitMq};
use mailslot_core::broker::{
    BrokerDelivery, BrokerError, BrokerErrorKind, BrokerMessage, BrokerSettlement, DeliveryTag, Publisher,
    Receiver,
};
use mailslot_testkit::servers;
use std::future::Future;
use std::time::Duration;

fn main() {
    macro_rules! trials {
        ($($case:ident),* $(,)?) => {
            vec![$(Trial::test(stringify!($case), || run($case))),*]
        };
    }
    let trials = trials![
        a_queue_that_is_not_there_is_refused_where_it_is_only_checked,
        a_queue_that_is_declared_otherwise_is_refused_with_the_fix,
        a_wrong_password_is_refused_and_never_told,
        a_server_that_is_not_there_is_away,
        a_message_that_no_queue_takes_is_refused,
        a_message_for_later_is_refused,
        many_messages_are_confirmed_in_their_order,
        the_prefetch_bounds_what_is_sent_ahead,
        a_dead_letter_goes_where_it_is_told,
        a_dead_letter_that_nobody_takes_goes_back,
        a_message_survives_its_connection_and_its_server,
        a_queue_that_is_deleted_ends_its_receiver,
        the_server_gives_up_at_the_delivery_limit,
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// How long anything may take on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(120);

fn run<F: Future<Output = ()>>(case: fn() -> F) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(TIME_MAX, case()).await })?;
    Ok(())
}

fn shared() -> RabbitMq {
    RabbitMq::new(&servers::rabbitmq()).expect("the URL is one")
}

fn queue() -> Queue {
    Queue::new(servers::fresh_schema()).expect("the name is short")
}

fn text(content: &str) -> BrokerMessage {
    BrokerMessage { payload: content.to_owned().into(), ..BrokerMessage::default() }
}

async fn publish(rabbit: &RabbitMq, queue: &str, content: &str) -> Result<(), BrokerError> {
    rabbit.publisher().publish(queue, vec![text(content)]).await.pop().expect("one message has one answer")
}

async fn one(receiver: &impl Receiver) -> BrokerDelivery {
    receiver.receive(1).await.expect("the broker delivers").remove(0)
}

async fn settle(receiver: &impl Receiver, tag: DeliveryTag, settlement: BrokerSettlement) {
    for settled in receiver.settle(vec![(tag, settlement)]).await {
        settled.expect("the broker takes the settlement");
    }
}

/// A queue of the shared server that is declared, with its name.
async fn declared(queue: Queue) -> (RabbitMq, String) {
    let rabbit = shared();
    let name = name_of(&queue);
    rabbit.receiver(queue).open().await.expect("it is declared");
    (rabbit, name)
}

fn name_of(queue: &Queue) -> String {
    queue.name().to_owned()
}

async fn a_queue_that_is_not_there_is_refused_where_it_is_only_checked() {
    let rabbit = shared();
    let error = rabbit.receiver(queue().only_checked()).open().await.expect_err("it is not there");
    assert_eq!(error.kind(), BrokerErrorKind::Destination);
    assert!(error.to_string().contains("declare it"), "{error}");
    // One refusal ends its channel, and nothing else.
    let receiver = rabbit.receiver(queue());
    receiver.open().await.expect("another queue is declared");
}

async fn a_queue_that_is_declared_otherwise_is_refused_with_the_fix() {
    let classic = queue().kind(QueueKind::Classic);
    let (rabbit, name) = declared(classic.clone()).await;
    let quorum = Queue::new(name).expect("the name is short");
    let error = rabbit.receiver(quorum.clone()).open().await.expect_err("it is a classic queue");
    assert_eq!(error.kind(), BrokerErrorKind::Destination);
    assert!(error.to_string().contains("only check it"), "{error}");
    rabbit.receiver(quorum.only_checked()).open().await.expect("it is there");
    rabbit.receiver(classic).open().await.expect("it is as it was declared");
}

async fn a_wrong_password_is_refused_and_never_told() {
    let url = servers::rabbitmq().replace("guest:guest", "guest:hunter2");
    let rabbit = RabbitMq::new(&url).expect("the URL is one");
    let error = rabbit.publisher().open().await.expect_err("the password is wrong");
    let told = format!("{rabbit:?} {error} {error:?} {:?}", rabbit.receiver(queue()));
    assert!(!told.contains("hunter2"), "{told}");
    assert_eq!(error.kind(), BrokerErrorKind::Destination, "{error:?}");
    let error = RabbitMq::new("amqp://guest:hunter2@[nowhere").expect_err("it is no URL");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

async fn a_server_that_is_not_there_is_away() {
    // Nobody listens on the port that says where the others are.
    let rabbit = RabbitMq::new("amqp://guest:guest@127.0.0.1:1/%2f").expect("the URL is one");
    for error in [
        rabbit.receiver(queue()).open().await.expect_err("nobody is there"),
        publish(&rabbit, "orders", "a").await.expect_err("nobody is there"),
    ] {
        assert!(error.is_transient(), "{error:?}");
    }
}

async fn a_message_that_no_queue_takes_is_refused() {
    let rabbit = shared();
    let error = publish(&rabbit, &servers::fresh_schema(), "a").await.expect_err("there is no queue");
    assert_eq!(error.kind(), BrokerErrorKind::Destination);
    let error = rabbit.publisher_to("no-such-exchange").publish("key", vec![text("a")]).await.remove(0);
    assert_eq!(error.expect_err("there is no exchange").kind(), BrokerErrorKind::Destination);
}

async fn a_message_for_later_is_refused() {
    let due = Some(jiff::Timestamp::now());
    let later = BrokerMessage { due, ..text("later") };
    let error = shared().publisher().publish("orders", vec![later]).await.remove(0);
    assert_eq!(error.expect_err("there is no schedule").kind(), BrokerErrorKind::Invalid);
}

async fn many_messages_are_confirmed_in_their_order() {
    let (rabbit, name) = declared(queue().prefetch(1_000)).await;
    let long = BrokerMessage { message_id: Some("x".repeat(256)), ..BrokerMessage::default() };
    let mut messages: Vec<_> = (0..1_000).map(|number| text(&number.to_string())).collect();
    messages.insert(500, long);
    let answers = rabbit.publisher().publish(&name, messages).await;
    let refused: Vec<_> = (0..answers.len()).filter(|place| answers[*place].is_err()).collect();
    assert_eq!(refused, [500], "each message has its own answer");
    let receiver = rabbit.receiver(Queue::new(name).expect("it is short").only_checked().prefetch(1_000));
    let mut found = Vec::new();
    while found.len() < 1_000 {
        found.extend(receiver.receive(1_000).await.expect("the broker delivers"));
    }
    let expected = (0..1_000).map(|number| number.to_string());
    assert!(found.iter().map(|delivery| &delivery.message.payload[..]).eq(expected.map(String::into_bytes)));
}

async fn the_prefetch_bounds_what_is_sent_ahead() {
    let narrow = queue().prefetch(2);
    let (rabbit, name) = declared(narrow.clone()).await;
    for content in ["a", "b", "c"] {
        publish(&rabbit, &name, content).await.expect("it is taken");
    }
    let first = rabbit.receiver(narrow);
    let held = [one(&first).await, one(&first).await];
    let other = rabbit.receiver(Queue::new(name).expect("it is short").only_checked());
    assert_eq!(one(&other).await.message, text("c"), "the first one has no room for it");
    for delivery in held {
        settle(&first, delivery.tag, BrokerSettlement::Ack).await;
    }
}

async fn a_dead_letter_goes_where_it_is_told() {
    let (rabbit, grave) = declared(queue()).await;
    let dead_letters = DeadLetters { exchange: String::new(), routing_key: grave.clone(), declares: false };
    let queue = queue().dead_letters(dead_letters);
    let name = name_of(&queue);
    let receiver = rabbit.receiver(queue);
    receiver.open().await.expect("it is declared");
    publish(&rabbit, &name, "poison").await.expect("it is taken");
    let delivery = one(&receiver).await;
    settle(&receiver, delivery.tag, BrokerSettlement::DeadLetter { reason: "why".to_owned() }).await;
    let buried = one(&rabbit.receiver(Queue::new(grave).expect("it is short"))).await.message;
    assert_eq!(buried.payload, "poison");
    assert_eq!(buried.headers["mailslot-reason"], "why");
}

async fn a_dead_letter_that_nobody_takes_goes_back() {
    let nowhere =
        DeadLetters { exchange: String::new(), routing_key: servers::fresh_schema(), declares: false };
    let queue = queue().dead_letters(nowhere);
    let name = name_of(&queue);
    let rabbit = shared();
    let receiver = rabbit.receiver(queue);
    receiver.open().await.expect("it is declared");
    publish(&rabbit, &name, "poison").await.expect("it is taken");
    let delivery = one(&receiver).await;
    let dead = BrokerSettlement::DeadLetter { reason: "why".to_owned() };
    let error = receiver.settle(vec![(delivery.tag, dead)]).await.remove(0).expect_err("nobody takes it");
    assert_eq!(error.kind(), BrokerErrorKind::Destination);
    let again = one(&receiver).await;
    assert_eq!((again.message, again.redeliveries), (text("poison"), Some(1)));
}

async fn a_message_survives_its_connection_and_its_server() {
    let server = servers::RabbitMq::start().expect("a server of one's own starts");
    let rabbit = RabbitMq::new(&server.url()).expect("the URL is one");
    let queue = queue().kind(QueueKind::Classic);
    let (name, receiver) = (name_of(&queue), rabbit.receiver(queue));
    receiver.open().await.expect("it is declared");
    publish(&rabbit, &name, "a").await.expect("it is taken");
    let before = one(&receiver).await;
    let server = tokio::task::spawn_blocking(move || server.close_connections().map(|()| server));
    let mut server = server.await.expect("it does not panic").expect("the connections are closed");
    let again = after_the_loss(&receiver, before.tag).await;
    assert_eq!(again.message, text("a"), "the next call has connected anew");
    let server = tokio::task::spawn_blocking(move || server.restart().map(|()| server));
    let _server = server.await.expect("it does not panic").expect("the server is killed and comes back");
    let last = after_the_loss(&receiver, again.tag).await;
    assert_eq!(last.message, text("a"));
    settle(&receiver, last.tag, BrokerSettlement::Ack).await;
    publish_again(&rabbit, &name).await;
}

/// A publisher whose connection was lost connects anew by itself, at the latest with its second try.
async fn publish_again(rabbit: &RabbitMq, queue: &str) {
    if let Err(error) = publish(rabbit, queue, "b").await {
        assert!(error.is_transient(), "{error:?}");
        publish(rabbit, queue, "b").await.expect("it has connected anew");
    }
}

/// The next delivery after the connection was lost, with which what was held went back. Whoever notices first says so.
async fn after_the_loss(receiver: &impl Receiver, held: DeliveryTag) -> BrokerDelivery {
    let next = match receiver.receive(1).await {
        Ok(mut deliveries) => deliveries.remove(0),
        Err(error) => {
            assert!(error.is_transient(), "{error:?}");
            one(receiver).await
        }
    };
    let late = receiver.settle(vec![(held, BrokerSettlement::Ack)]).await.remove(0);
    assert_eq!(late.expect_err("it went back").kind(), BrokerErrorKind::DeliveryLost);
    next
}

async fn a_queue_that_is_deleted_ends_its_receiver() {
    let server = servers::RabbitMq::start().expect("a server of one's own starts");
    let rabbit = RabbitMq::new(&server.url()).expect("the URL is one");
    let queue = queue();
    let (name, receiver) = (name_of(&queue), rabbit.receiver(queue));
    receiver.open().await.expect("it is declared");
    let delete =
        tokio::task::spawn_blocking(move || server.control(&["delete_queue", &name]).map(|_| server));
    let (ended, _server) = tokio::join!(receiver.receive(1), delete);
    assert_eq!(ended.expect_err("it is gone").kind(), BrokerErrorKind::Destination);
    receiver.open().await.expect("it is declared again");
}

async fn the_server_gives_up_at_the_delivery_limit() {
    let queue = queue().delivery_limit(2);
    let (rabbit, name) = declared(queue.clone()).await;
    publish(&rabbit, &name, "poison").await.expect("it is taken");
    let receiver = rabbit.receiver(queue);
    for redeliveries in 0..=2 {
        let delivery = one(&receiver).await;
        assert_eq!(delivery.redeliveries, Some(redeliveries));
        settle(&receiver, delivery.tag, BrokerSettlement::Return { after: Duration::ZERO }).await;
    }
    let grave = Queue::new(format!("{name}.dead-letters")).expect("it is short").only_checked();
    assert_eq!(one(&rabbit.receiver(grave)).await.message.payload, "poison");
}
