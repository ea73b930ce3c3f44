//! A worker that holds more messages than it runs.

use super::bench::{Bench, Worker, start};
use super::script::{Run, Runs, order, scripted};
use super::tap::TapStore;
use mailslot_core::store::Filter;
use mailslot_core::{MessageId, Status};
use mailslot_engine::{Inbox, InboxBuilder};

/// How many handlers run at once.
pub(super) const RUNNING: usize = 16;

/// How many orders there are: enough for a worker on the slowest machine to claim ahead before they are used up.
const ORDERS: u32 = 640;

/// A worker all of whose handlers run, and that has claimed more.
pub(super) struct Busy {
    pub(super) worker: Worker,
    /// What runs.
    pub(super) running: Vec<Run>,
    /// What is claimed and has not started, as far as it was claimed by then.
    pub(super) unstarted: Vec<MessageId>,
    /// What starts later, and never ends.
    _later: Runs,
}

/// Makes a worker busy. A worker claims ahead once it has seen handlers end fast, so some end first.
pub(super) async fn busy(b: &Bench, builder: InboxBuilder<TapStore>) -> Busy {
    let (handler, mut runs) = scripted();
    let worker = start(builder.handler(handler).concurrency(RUNNING));
    accept_orders(&worker).await;
    let mut running = runs.take(RUNNING).await;
    let mut ended = 0;
    while worker.stats().leased == worker.stats().started {
        ended += RUNNING as u64;
        running.into_iter().for_each(Run::complete);
        running = runs.take(RUNNING).await;
    }
    worker.until(|stats| stats.completed == ended).await;
    let leased = Filter { statuses: Some(vec![Status::Leased]), ..Filter::default() };
    let mut unstarted = b.find(leased).await;
    unstarted.retain(|id| running.iter().all(|run| run.id() != *id));
    assert!(!unstarted.is_empty(), "the worker has claimed ahead");
    Busy { worker, running, unstarted, _later: runs }
}

async fn accept_orders(inbox: &Inbox<TapStore>) {
    let prepared = |number| inbox.accept(&order(number)).prepare().expect("an order can be accepted");
    inbox.accept_batch((0..ORDERS).map(prepared).collect()).await.expect("the orders are accepted");
}
