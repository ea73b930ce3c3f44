//! The inbox: the handle that a program holds.

use crate::accept::{
    Accept, AcceptError, AcceptWriter, Alone, BatchError, ContractGate, InTransaction, Pressure,
};
use crate::builder::{Classifier, InboxBuilder};
use crate::circuit::CircuitGate;
use crate::config::{MaintenanceConfig, WorkerConfig};
use crate::follow::Followers;
use crate::hook::{Hook, HookFailurePolicy};
use crate::operator::Operator;
use crate::route::Routes;
use crate::stats::{Stats, StatsSender};
use crate::store::Store;
use crate::worker::{self, Control, WorkerControl};
use mailslot_core::breaker::Circuit;
use mailslot_core::store::{AppendGroup, RetentionPolicy};
use mailslot_core::{
    AppendIn, Contract, EndpointName, Extensions, FieldError, Message, NewMessage, Payload, Random, Receipt,
};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::watch;

/// Accepts messages and works on them. Clones share everything.
#[derive(Debug, Clone)]
pub struct Inbox<S> {
    store: S,
    engine: Arc<Engine>,
}

/// What the parts of the engine share.
pub(crate) struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) endpoint: EndpointName,
    pub(crate) worker: WorkerConfig,
    pub(crate) maintenance: MaintenanceConfig,
    pub(crate) retention: watch::Sender<RetentionPolicy>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) hook_failure: HookFailurePolicy,
    pub(crate) classifier: Option<Classifier>,
    pub(crate) circuit: CircuitGate,
    pub(crate) followers: Arc<Followers>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) routes: Routes,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) stats: StatsSender,
    pub(crate) control: Arc<Control>,
    gate: ContractGate,
    writer: AcceptWriter,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("endpoint", &self.endpoint)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

impl<S: Store + Clone> Inbox<S> {
    /// Starts to put an inbox on a store together.
    pub fn builder(store: S) -> InboxBuilder<S> {
        InboxBuilder::new(store)
    }

    pub(crate) fn new(
        builder: InboxBuilder<S>,
        routes: Routes,
        gate: ContractGate,
        extensions: Arc<Extensions>,
    ) -> Self {
        let shared: Arc<dyn Store> = Arc::new(builder.store.clone());
        let stats = StatsSender::new();
        let pressure = |policy| Pressure::new(policy, shared.clone(), builder.endpoint.clone());
        let pressure = builder.back_pressure.map(pressure);
        let followers = Arc::new(Followers::new(builder.observers, builder.sinks, stats.clone()));
        let tell_circuit = {
            let (followers, endpoint) = (Arc::clone(&followers), builder.endpoint.clone());
            move |circuit| followers.circuit(&endpoint, circuit)
        };
        let engine = Engine {
            writer: AcceptWriter::new(shared.clone(), stats.clone(), pressure),
            store: shared,
            endpoint: builder.endpoint,
            worker: builder.worker,
            retention: watch::Sender::new(builder.maintenance.retention.clone()),
            maintenance: builder.maintenance,
            hooks: builder.hooks,
            hook_failure: builder.hook_failure,
            classifier: builder.classifier,
            circuit: CircuitGate::new(builder.circuit_breaker, tell_circuit),
            followers,
            random: builder.random,
            routes,
            extensions,
            stats,
            control: Arc::new(Control::new()),
            gate,
        };
        Self { store: builder.store, engine: Arc::new(engine) }
    }

    /// Accepts a message: await the result to store it. Concurrent accepts of a process share one transaction.
    ///
    /// # Cancel safety
    /// Once it is awaited, dropping the future does not undo the accept.
    pub fn accept<'a, M: Message>(&'a self, message: &M) -> Accept<'a, Alone<'a>> {
        Accept::typed(message, &self.engine.endpoint, &self.engine.gate, Alone(&self.engine.writer))
    }

    /// Accepts content that is already encoded.
    pub fn accept_raw(&self, contract: Contract, payload: Payload) -> Accept<'_, Alone<'_>> {
        let message = Ok((contract, payload));
        Accept::new(message, &self.engine.endpoint, &self.engine.gate, Alone(&self.engine.writer))
    }

    /// Accepts a message in the caller's own transaction: it is durable when the caller commits. One that is known
    /// already gives the first receipt and leaves the transaction as it is, unless the accept is
    /// [strict](Accept::strict).
    pub fn accept_in<'a, M, C>(
        &'a self,
        connection: &'a mut C,
        message: &M,
    ) -> Accept<'a, InTransaction<'a, S, C>>
    where
        M: Message,
        S: AppendIn<C>,
        C: Send + ?Sized,
    {
        let target = InTransaction { store: self.store.clone(), connection, strict: false };
        Accept::typed(message, &self.engine.endpoint, &self.engine.gate, target)
    }

    /// Accepts many messages together, in order: all are stored, or none is. See [`Accept::prepare`].
    ///
    /// # Errors
    /// The first message that was refused, by its index. An empty batch stores nothing.
    pub async fn accept_batch(&self, messages: Vec<NewMessage>) -> Result<Vec<Receipt>, BatchError> {
        // A message that was put together elsewhere has not passed the checks that need the time.
        let now = jiff::Timestamp::now();
        for (index, message) in messages.iter().enumerate() {
            let known = self.engine.gate.check(&message.contract);
            let checked = known.and_then(|()| message.check(now).map_err(AcceptError::Field));
            checked.map_err(|error| BatchError { index, error })?;
        }
        let max = mailslot_core::limits::APPEND_BATCH_MAX;
        if messages.len() > max {
            let fix = format!("split it into batches of at most {max}");
            let error = FieldError::new("batch", format!("has {} messages", messages.len()), fix);
            return Err(BatchError { index: max, error: AcceptError::Field(error) });
        }
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        self.engine.writer.accept(AppendGroup { messages }).await
    }

    /// Works until `shutdown` is ready: claims, handles, settles, keeps house. Then stops in order, within the grace
    /// time.
    ///
    /// # Errors
    /// No handler is registered, or this inbox already runs.
    ///
    /// # Cancel safety
    /// Dropping the future stops claiming at once; what it held is taken back when its leases run out.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        worker::run(self.engine.clone(), shutdown).await
    }

    /// Pause, resume, drain.
    pub fn control(&self) -> WorkerControl {
        WorkerControl { control: self.engine.control.clone(), store: self.engine.store.clone() }
    }

    /// Queries and changes for people.
    pub fn operator(&self) -> Operator {
        let engine = self.engine.clone();
        Operator::of(
            self.engine.store.clone(),
            Arc::new(move |contract| engine.routes.get(contract).is_some()),
        )
    }

    /// What this process did since the inbox was built.
    pub fn stats(&self) -> Stats {
        self.engine.stats.get()
    }

    /// Follows [`stats`](Self::stats).
    pub fn watch(&self) -> watch::Receiver<Stats> {
        self.engine.stats.watch()
    }

    /// How the [circuit breaker](InboxBuilder::circuit_breaker) stands, now and with each change. Always closed if there is none.
    pub fn circuit(&self) -> watch::Receiver<Circuit> {
        self.engine.circuit.watch()
    }

    /// Changes for how long ended messages are kept, from the next pass on.
    pub fn set_retention(&self, policy: RetentionPolicy) {
        self.engine.retention.send_replace(policy);
    }

    /// Tells the worker that there may be work: after a commit of [`accept_in`](Self::accept_in), to save the poll.
    pub fn wake(&self) {
        self.engine.store.work_signal().notify();
    }

    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }
}

/// An inbox cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No handler is registered.
    #[error(
        "the inbox has no handler: add one with `.handler(…)` to its builder, or only accept and do not run it"
    )]
    NoHandlers,
    /// This inbox already runs.
    #[error("the inbox already runs in this process: build another one, or raise its concurrency")]
    AlreadyRunning,
    /// The worker's label is out of bounds.
    #[error(transparent)]
    Field(FieldError),
    /// The heartbeat thread cannot start.
    #[error("failed to start the heartbeat thread: {0}")]
    Thread(#[source] std::io::Error),
}
