//! Every example runs and prints what its comments promise.

#![expect(dead_code, reason = "the examples' own `main` is not called here")]

#[cfg(any(feature = "postgres", feature = "rabbitmq"))]
use mailslot_testkit::servers;
use std::sync::{Arc, Mutex};

#[cfg(feature = "diesel-async")]
#[path = "../../../examples/accept_in_diesel.rs"]
mod accept_in_diesel;
#[cfg(feature = "sea-orm")]
#[path = "../../../examples/accept_in_sea_orm.rs"]
mod accept_in_sea_orm;
#[cfg(feature = "postgres")]
#[path = "../../../examples/accept_in_sqlx.rs"]
mod accept_in_sqlx;
#[cfg(feature = "tokio-postgres")]
#[path = "../../../examples/accept_in_tokio_postgres.rs"]
mod accept_in_tokio_postgres;
#[cfg(feature = "sqlite")]
#[path = "../../../examples/accept_in_transaction.rs"]
mod accept_in_transaction;
#[path = "../../../examples/layers_and_hooks.rs"]
mod layers_and_hooks;
#[path = "../../../examples/quickstart.rs"]
mod quickstart;
#[cfg(feature = "rabbitmq")]
#[path = "../../../examples/rabbitmq_subscriber.rs"]
mod rabbitmq_subscriber;
#[path = "../../../examples/redrive.rs"]
mod redrive;
#[path = "../../../examples/sessions.rs"]
mod sessions;
#[cfg(feature = "sqlite")]
#[path = "../../../examples/transactional_handler.rs"]
mod transactional_handler;

/// Keeps what an example prints.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self) -> Arc<dyn Fn(String) + Send + Sync> {
        let lines = self.0.clone();
        Arc::new(move |line| lines.lock().expect("no holder of the log panics").push(line))
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no holder of the log panics").clone()
    }

    fn of(&self, start: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.starts_with(start)).collect()
    }
}

#[tokio::test]
async fn quickstart() {
    let log = Log::default();
    quickstart::run(log.say()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "stored once: true",
            "attempt 1: the mail server is busy",
            "attempt 2: mail sent to ada@example.org",
            "handled 1, after 1 retry",
        ]
    );
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn transactional_handler() {
    let log = Log::default();
    transactional_handler::run(log.say()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "attempt 1: the balance is written, then the handler fails",
            "attempt 2: the balance is written, then the handler fails",
            "attempt 3: the balance is written, and the handler succeeds",
            "the handler ran 3 times, the account has 1250 cents",
        ]
    );
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn accept_in_transaction() {
    let log = Log::default();
    accept_in_transaction::run(log.say()).await.unwrap();
    assert_eq!(log.lines(), ORDERS);
}

/// What the examples of every driver print.
const ORDERS: [&str; 3] =
    ["order 1 is rolled back: 0 messages", "order 2 is committed: 1 message", "order 2 is confirmed"];

#[cfg(feature = "postgres")]
#[tokio::test]
async fn accept_in_sqlx() {
    let log = Log::default();
    accept_in_sqlx::run(&servers::shared(), &servers::fresh_schema(), log.say()).await.unwrap();
    let [first, second, last] = ORDERS;
    assert_eq!(log.lines(), [first, second, "order 2 again is refused: true; orders: 1", last]);
}

#[cfg(feature = "tokio-postgres")]
#[tokio::test]
async fn accept_in_tokio_postgres() {
    let log = Log::default();
    accept_in_tokio_postgres::run(&servers::shared(), &servers::fresh_schema(), log.say()).await.unwrap();
    assert_eq!(log.lines(), ORDERS);
}

#[cfg(feature = "sea-orm")]
#[tokio::test]
async fn accept_in_sea_orm() {
    let log = Log::default();
    accept_in_sea_orm::run(&servers::shared(), &servers::fresh_schema(), log.say()).await.unwrap();
    assert_eq!(log.lines(), ORDERS);
}

#[cfg(feature = "diesel-async")]
#[tokio::test]
async fn accept_in_diesel() {
    let log = Log::default();
    accept_in_diesel::run(&servers::shared(), &servers::fresh_schema(), log.say()).await.unwrap();
    let [_, second, last] = ORDERS;
    let first = "order 1 is rolled back, because the customer has no money: 0 messages";
    assert_eq!(log.lines(), [first, second, last]);
}

#[tokio::test]
async fn sessions() {
    let log = Log::default();
    sessions::run(log.say()).await.unwrap();
    assert_eq!(
        log.of("order-1"),
        [
            "order-1: check the stock",
            "order-1: take the money fails for good",
            "order-1 is blocked by a dead letter; 1 step waits behind it",
            "order-1: send the parcel",
        ]
    );
    let passed = ["order-2: check the stock", "order-2: take the money", "order-2: send the parcel"];
    assert_eq!(log.of("order-2"), passed);
    assert_eq!(log.of("an operator"), ["an operator skips 1 message"]);
    assert_eq!(log.lines().last().unwrap(), "blocked sessions: 0");
}

#[tokio::test]
async fn layers_and_hooks() {
    let log = Log::default();
    layers_and_hooks::run(log.say()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "hook: attempt 1 begins",
            " layer: 11 bytes pass",
            "hook: it ended with Retry(None)",
            "hook: attempt 2 begins",
            " layer: 11 bytes pass",
            "  the handler builds the report of month 7",
            "hook: it ended with Complete",
            "hook: attempt 1 begins",
            "hook: it ended with Skip",
            "handled 1, skipped 1",
        ]
    );
}

#[tokio::test]
async fn redrive() {
    let log = Log::default();
    redrive::run(log.say()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "20 dead letters: each used up its attempts",
            "redrive 1 has 20 messages",
            "handled 20, 0 dead letters",
        ]
    );
}

#[cfg(feature = "rabbitmq")]
#[tokio::test]
async fn rabbitmq_subscriber() {
    let log = Log::default();
    rabbitmq_subscriber::run(&servers::rabbitmq(), &servers::fresh_schema(), log.say()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "order 1 is billed",
            "handled 1, skipped 1 redelivery",
            "order 2 fails: no such account",
            "one session is blocked, 2 orders wait in it",
            "order 2 is billed",
            "order 3 is billed",
            "order 4 is billed",
            "the session is drained",
        ]
    );
}
