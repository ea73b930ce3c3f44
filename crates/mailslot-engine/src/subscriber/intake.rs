//! The intake: receives as much as there is room for, and sees that each delivery is handled in its turn.

use super::deliver::{Delivering, deliver};
use super::item::Item;
use super::lanes::{Lane, Lanes};
use super::pause::Pause;
use super::settling::Left;
use super::{Core, SubscriberState};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use mailslot_core::breaker::Circuit;
use mailslot_core::broker::{BrokerDelivery, BrokerError, BrokerSettlement, DeliveryTag};
use mailslot_core::{CancelCause, Cancellation};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Owns what is in flight.
pub(super) struct Intake<'a> {
    core: &'a Arc<Core>,
    stop: &'a CancellationToken,
    lanes: Lanes<Item>,
    running: JoinSet<Finished>,
    handlers: HashMap<DeliveryTag, Cancellation>,
    abort: watch::Sender<bool>,
    receiving: Option<BoxFuture<'static, Received>>,
    /// After failures of the broker.
    away: Pause,
    said: bool,
    /// Whether the circuit was open when it was looked at last.
    is_open: bool,
}

type Received = Result<Vec<BrokerDelivery>, BrokerError>;

/// A delivery that is done with.
struct Finished {
    tag: DeliveryTag,
    lane: Option<Lane>,
    left: Left,
}

impl<'a> Intake<'a> {
    pub(super) fn new(core: &'a Arc<Core>, stop: &'a CancellationToken) -> Self {
        Self {
            core,
            stop,
            lanes: Lanes::default(),
            running: JoinSet::new(),
            handlers: HashMap::new(),
            abort: watch::Sender::new(false),
            receiving: None,
            away: Pause::default(),
            said: false,
            is_open: false,
        }
    }

    /// Receives until the stop, and then ends in order.
    pub(super) async fn run(mut self) {
        self.core.counters.is(SubscriberState::Receiving);
        let mut circuit = self.core.engine.circuit.watch();
        loop {
            self.follow_circuit().await;
            self.start_ready();
            self.ask_for_more();
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(finished) = self.running.join_next() => self.finished(finished).await,
                received = poll(&mut self.receiving) => self.received(received),
                _ = circuit.changed() => {}
            }
        }
        self.end().await;
    }

    /// While the circuit is open nothing begins: what waits here goes back, to processes whose circuit is closed.
    async fn follow_circuit(&mut self) {
        let was_open =
            std::mem::replace(&mut self.is_open, self.core.engine.circuit.circuit() == Circuit::Open);
        if !self.is_open {
            return;
        }
        if !was_open {
            // The next one waits until it is not open any more.
            self.receiving = None;
        }
        give_back(self.core, self.lanes.drain()).await;
    }

    fn start_ready(&mut self) {
        let concurrency = self.core.engine.circuit.limit(self.core.settings.concurrency);
        while self.running.len() < concurrency {
            let Some((lane, item)) = self.lanes.take() else { return };
            let cancellation = Cancellation::new();
            let tag = item.tag;
            self.handlers.insert(tag, cancellation.clone());
            let delivering = Delivering {
                core: Arc::clone(self.core),
                tag,
                arrived: item.arrived,
                cancellation,
                abort: self.abort.subscribe(),
                event: None,
            };
            self.running.spawn(async move {
                let core = Arc::clone(&delivering.core);
                let done = AssertUnwindSafe(deliver(delivering, item.content)).catch_unwind().await;
                let left = match done {
                    Ok(left) => left,
                    Err(_) => broke(&core, tag).await,
                };
                Finished { tag, lane, left }
            });
        }
    }

    /// Asks the broker for what there is room for, unless that was done already.
    fn ask_for_more(&mut self) {
        let settings = &self.core.settings;
        let room = settings.hold.saturating_sub(self.lanes.len() + self.running.len());
        if self.receiving.is_some() || room == 0 {
            return;
        }
        let core = Arc::clone(self.core);
        let (max, away) = (room.min(settings.receive_max), self.away.until());
        self.receiving = Some(Box::pin(async move { receive(&core, max, away).await }));
    }

    fn received(&mut self, received: Received) {
        self.receiving = None;
        match received {
            Ok(deliveries) => {
                self.away.worked();
                if std::mem::take(&mut self.said) {
                    tracing::info!(endpoint = %self.core.engine.endpoint, "the broker is back");
                }
                self.core.counters.is(SubscriberState::Receiving);
                self.core.counters.add(|counts| counts.received += deliveries.len() as u64);
                for delivery in deliveries {
                    let item = Item::read(self.core, delivery);
                    self.lanes.push(item.lane(), item);
                }
            }
            Err(error) => self.lost(&error),
        }
    }

    /// The receiver connects anew with the next call; until then it gets some rest.
    fn lost(&mut self, error: &BrokerError) {
        let wait = self.away.failed(Instant::now(), self.core.engine.random.unit());
        self.core.counters.add(|counts| counts.broker_errors += 1);
        self.core.counters.is(SubscriberState::Reconnecting);
        let endpoint = &self.core.engine.endpoint;
        if self.said {
            return tracing::debug!(%endpoint, %error, ?wait, "the broker is still away");
        }
        self.said = true;
        if error.is_transient() {
            tracing::warn!(%endpoint, %error, ?wait, "the broker is away; trying until it is back");
        } else {
            tracing::error!(%endpoint, %error, ?wait, "the broker refuses; trying until somebody has mended it");
        }
    }

    async fn finished(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        // Only the end of the runtime ends a task that catches its panics.
        let Ok(Finished { tag, lane, left }) = finished else { return };
        self.handlers.remove(&tag);
        if left == Left::GaveBack && self.core.pause.until().is_some() {
            // What is asked for already would come at once, to a store that is away.
            self.receiving = None;
        }
        match (lane, left) {
            (Some(lane), Left::GaveBack) => {
                let behind: Vec<_> = self.lanes.gave_back(&lane).collect();
                give_back(self.core, behind).await;
            }
            (Some(lane), Left::Settled) => self.lanes.done(lane),
            (None, _) => {}
        }
    }

    async fn end(&mut self) {
        self.receiving = None;
        for cancellation in self.handlers.values() {
            cancellation.cancel(CancelCause::Shutdown);
        }
        give_back(self.core, self.lanes.drain()).await;
        let grace = self.core.engine.worker.grace;
        if tokio::time::timeout(grace, self.all_finished()).await.is_err() {
            tracing::warn!(
                endpoint = %self.core.engine.endpoint, handlers = self.running.len(), ?grace,
                "handlers did not end within the grace time; their deliveries go back"
            );
            self.abort.send_replace(true);
            self.all_finished().await;
        }
    }

    async fn all_finished(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

/// Receives, after the rest that the broker and the store want.
async fn receive(core: &Core, max: usize, away: Option<Instant>) -> Received {
    if let Some(until) = away {
        sleep_until(until).await;
        core.receiver.open().await?;
    }
    while let Some(until) = core.pause.until() {
        core.counters.is(SubscriberState::Holding);
        sleep_until(until).await;
    }
    if core.engine.circuit.circuit() == Circuit::Open {
        core.counters.is(SubscriberState::Holding);
        core.engine.circuit.not_open().await;
    }
    core.counters.is(SubscriberState::Receiving);
    core.receiver.receive(max).await
}

/// Waits for what was asked for.
async fn poll(receiving: &mut Option<BoxFuture<'static, Received>>) -> Received {
    match receiving {
        Some(receiving) => receiving.await,
        None => std::future::pending().await,
    }
}

/// Returns deliveries that nobody has begun to handle, in their order.
async fn give_back(core: &Core, items: Vec<Item>) {
    let at_once = || BrokerSettlement::Return { after: Duration::ZERO };
    join_all(items.into_iter().map(|item| core.settle(item.tag, at_once()))).await;
}

/// Our own code broke: a defect, which must not lose a delivery.
async fn broke(core: &Core, tag: DeliveryTag) -> Left {
    tracing::error!(endpoint = %core.engine.endpoint, "a delivery made the subscriber panic; it goes back");
    core.settle(tag, BrokerSettlement::Return { after: Duration::from_secs(1) }).await
}
