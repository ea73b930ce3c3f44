//! Executors: take a claimed message, have it handled, and tell the turn loop what to settle.

use super::backlog::{Backlog, Job};
use crate::dispatch;
use crate::follow::OutcomeEvent;
use crate::inbox::Engine;
use crate::route::Route;
use mailslot_core::breaker::Circuit;
use mailslot_core::store::Settled;
use mailslot_core::{Context, Disposition, ErrorText, HandlerError, Settlement, Verdict};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// What became of a job.
#[derive(Debug)]
pub(super) enum Finished {
    /// The turn loop has to settle it.
    Decided(Settlement),
    /// It is settled already, in its handler's transaction.
    Settled(Settlement, Settled),
}

/// Takes jobs one after the other.
pub(super) struct Executor {
    engine: Arc<Engine>,
    backlog: Arc<Backlog>,
    abort: watch::Receiver<bool>,
    finished: mpsc::UnboundedSender<Finished>,
}

impl Executor {
    pub(super) fn new(
        engine: Arc<Engine>,
        backlog: Arc<Backlog>,
        abort: watch::Receiver<bool>,
        finished: mpsc::UnboundedSender<Finished>,
    ) -> Self {
        Self { engine, backlog, abort, finished }
    }

    pub(super) async fn run(mut self) {
        while let Some(job) = self.backlog.next().await {
            let finished = self.run_job(job).await;
            // The turn loop outlives the executors, unless the whole run was dropped.
            if self.finished.send(finished).is_err() {
                return;
            }
        }
    }

    async fn run_job(&mut self, job: Job) -> Finished {
        let Job { leased, cancellation } = job;
        let route = self.engine.routes.get(&leased.envelope.contract);
        // The handler before this one may have opened the circuit, and the turn loop has not heard of it yet.
        let is_open = self.engine.circuit.circuit() == Circuit::Open;
        let (Some(route), None, false) = (route, cancellation.cause(), is_open) else {
            // Lost, cancelled or stopping before it started: the store decides what a release means.
            return Finished::Decided(settlement_of(&leased, Disposition::Release, None));
        };
        self.engine.stats.add(|stats| stats.started += 1);
        let context = Context::new(leased, cancellation, self.engine.extensions.clone());
        self.engine.followers.received(|| event(&context));
        let verdict = tokio::select! {
            biased;
            verdict = dispatch::run(&self.engine, route, &context) => Some(verdict),
            _ = self.abort.wait_for(|abort| *abort) => None,
        };
        let Some(verdict) = verdict else {
            dispatch::abandon(&self.engine, &context).await;
            dispatch::roll_back(context.take_enlisted()).await;
            return Finished::Decided(settlement(&context, Disposition::Release, None));
        };
        let finished = conclude(&self.engine, route, &context, verdict).await;
        tell(&self.engine, &context, &finished).await;
        finished
    }
}

fn event(context: &Context) -> OutcomeEvent {
    OutcomeEvent::of_stored(context.envelope(), context.attempt().number)
}

/// Tells those who follow what was decided: before it is settled, or after it was settled in the handler's transaction.
async fn tell(engine: &Engine, context: &Context, finished: &Finished) {
    let (Finished::Decided(settlement) | Finished::Settled(settlement, Settled::Applied(_))) = finished
    else {
        return;
    };
    if engine.followers.is_empty() {
        return;
    }
    if let Some(event) = event(context).decided(&settlement.disposition, settlement.error.as_ref()) {
        engine.followers.ended(event).await;
    }
}

fn settlement(context: &Context, disposition: Disposition, error: Option<ErrorText>) -> Settlement {
    let (lease, attempt) = (context.lease(), context.attempt());
    Settlement { lease, seq: context.envelope().seq, attempt, disposition, error }
}

fn settlement_of(
    leased: &mailslot_core::store::Leased,
    disposition: Disposition,
    error: Option<ErrorText>,
) -> Settlement {
    Settlement { lease: leased.lease, seq: leased.envelope.seq, attempt: leased.attempt, disposition, error }
}

/// Turns the verdict into a settlement, in the handler's own transaction if it took one.
async fn conclude(engine: &Engine, route: &Route, context: &Context, verdict: Verdict) -> Finished {
    let (disposition, error) = dispatch::decide_for(engine, route, context, verdict);
    let settlement = settlement(context, disposition, error);
    let Some(transaction) = context.take_enlisted() else { return Finished::Decided(settlement) };
    if settlement.disposition != Disposition::Complete {
        dispatch::roll_back(Some(transaction)).await;
        return Finished::Decided(settlement);
    }
    match transaction.settle_and_commit(settlement.clone()).await {
        Ok(settled) => Finished::Settled(settlement, settled),
        Err(failed) => {
            dispatch::roll_back(Some(transaction)).await;
            let verdict = HandlerError::retryable(failed).into();
            let (disposition, error) = dispatch::decide_for(engine, route, context, verdict);
            Finished::Decided(Settlement { disposition, error, ..settlement })
        }
    }
}
