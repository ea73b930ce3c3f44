//! The conformance suite for brokers: every behaviour of [`Receiver`] and [`Publisher`] as a named case.
//!
//! A backend's `tests/conformance.rs`, declared with `harness = false`, gives only a constructor; see
//! `tests/broker.rs` of this crate for the memory broker's. Each case has a destination of its own.

mod deliver;
mod session;
mod settle;

use futures_util::future::{BoxFuture, LocalBoxFuture};
use jiff::Timestamp;
use libtest_mimic::{Arguments, Completion, Trial};
use mailslot_core::broker::{
    BrokerCapabilities, BrokerDelivery, BrokerError, BrokerMessage, BrokerSettlement, DeliveryTag, Publisher,
    Receiver,
};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A dead letter and its reason.
pub type DeadLetter = (BrokerMessage, String);

/// A fresh destination of a broker.
pub struct Opened {
    /// Publishes to it, among others.
    pub publisher: Arc<dyn Publisher>,
    /// Its name.
    pub destination: String,
    /// Makes another receiver of it, and opens it.
    pub receiver: Box<dyn Fn() -> BoxFuture<'static, Box<dyn Receiver>> + Send + Sync>,
    /// The broker's time, for brokers that hand out messages later.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Lets so much time pass, for brokers that hand out messages later: a broker with a clock of its own moves it, and for any
    /// other nothing is to be done but to wait.
    pub pass: Box<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>,
    /// Reads its dead letters with their reasons, for brokers that keep them.
    pub dead_letters: Box<dyn Fn() -> BoxFuture<'static, Vec<DeadLetter>> + Send + Sync>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("destination", &self.destination).finish_non_exhaustive()
    }
}

/// A case, and what the broker must be able to do.
struct Case {
    noun: &'static str,
    name: &'static str,
    missing: fn(&BrokerCapabilities) -> Option<&'static str>,
    body: for<'a> fn(&'a Opened) -> LocalBoxFuture<'a, ()>,
}

/// Lists the cases of a file: `broker_cases![first, second needs sessions]`.
macro_rules! broker_cases {
    ($($case:ident $(needs $need:ident)?),+ $(,)?) => {
        pub(super) fn cases() -> Vec<super::Case> {
            vec![$(super::Case {
                noun: module_path!().rsplit("::").next().unwrap_or_default(),
                name: stringify!($case),
                missing: |_can| {
                    $(if !_can.$need { return Some(concat!("the broker does not have: ", stringify!($need))); })?
                    None
                },
                body: |opened| Box::pin($case(opened)),
            }),+]
        }
    };
}
use broker_cases;

/// Runs every case on destinations from `open` and ends the process with the result.
pub fn run<F, Fut>(backend: &str, open: F) -> !
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Opened> + Send + 'static,
{
    libtest_mimic::run(&Arguments::from_args(), trials(backend, open)).exit()
}

/// The trials that [`run`] runs, to be run together with others.
pub fn trials<F, Fut>(backend: &str, open: F) -> Vec<Trial>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Opened> + Send + 'static,
{
    let open = Arc::new(open);
    let trial = |case: Case| {
        let open = Arc::clone(&open);
        let name = format!("{}::{}", case.noun, case.name);
        let test = move || {
            crate::store::in_runtime(async {
                let opened = open().await;
                if let Some(missing) = (case.missing)(&opened.can().await) {
                    return Ok(Completion::ignored_with(missing));
                }
                (case.body)(&opened).await;
                Ok(Completion::Completed)
            })
        };
        Trial::ignorable_test(name, test).with_kind(backend)
    };
    let cases = [deliver::cases(), settle::cases(), session::cases()];
    cases.into_iter().flatten().map(trial).collect()
}

/// What the cases say over and over again.
impl Opened {
    async fn publish(&self, messages: Vec<BrokerMessage>) {
        for published in self.publisher.publish(&self.destination, messages).await {
            published.expect("the broker takes the message");
        }
    }

    /// What the broker can do on both sides.
    async fn can(&self) -> BrokerCapabilities {
        self.receiver().await.capabilities()
    }

    async fn receiver(&self) -> Box<dyn Receiver> {
        (self.receiver)().await
    }
}

/// Back to the broker, at once.
const RETURN: BrokerSettlement = BrokerSettlement::Return { after: Duration::ZERO };

/// Short, because a real broker really waits.
const LATER: Duration = Duration::from_millis(500);

fn text(content: &str) -> BrokerMessage {
    BrokerMessage { payload: content.as_bytes().to_vec().into(), ..BrokerMessage::default() }
}

fn in_session(session: &str, content: &str) -> BrokerMessage {
    BrokerMessage { session: Some(session.into()), ..text(content) }
}

fn contents(deliveries: &[BrokerDelivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| String::from_utf8_lossy(&delivery.message.payload).into_owned())
        .collect()
}

/// Receives until `count` deliveries are there: a broker may give fewer at a time.
async fn receive(receiver: &dyn Receiver, count: usize) -> Vec<BrokerDelivery> {
    let mut deliveries = Vec::new();
    while deliveries.len() < count {
        deliveries.extend(receiver.receive(count - deliveries.len()).await.expect("the broker delivers"));
    }
    deliveries
}

async fn settle(
    receiver: &dyn Receiver,
    tag: DeliveryTag,
    settlement: BrokerSettlement,
) -> Result<(), BrokerError> {
    receiver.settle(vec![(tag, settlement)]).await.pop().expect("one settlement has one answer")
}

async fn ack(receiver: &dyn Receiver, tag: DeliveryTag) {
    settle(receiver, tag, BrokerSettlement::Ack).await.expect("the broker takes the settlement");
}
