//! The builder of an inbox: every misuse fails here, with the fix in the message.

use crate::accept::{BackPressure, ContractGate};
use crate::circuit::CircuitBreaker;
use crate::config::{MaintenanceConfig, WorkerConfig};
use crate::follow::{Observer, OutcomeSink};
use crate::handler::{BoxedHandler, Handler, HandlerOptions, into_service};
use crate::hook::{Hook, HookFailurePolicy};
use crate::inbox::Inbox;
use crate::route::{ContractPattern, Route, Routes};
use crate::store::Store;
use crate::subscriber::SubscriberBuilder;
use mailslot_core::broker::Receiver;
use mailslot_core::handler::BoxError;
use mailslot_core::{
    Contract, ContractRegistry, Delivery, DuplicateContract, EndpointName, ErrorClass, Extensions,
    FieldError, HandlerError, LedgerStore, Message, Random, Raw, Retry, SeededRandom, Verdict,
};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service};

/// Puts an [`Inbox`] together.
#[must_use = "a builder does nothing until `build`"]
pub struct InboxBuilder<S> {
    pub(crate) store: S,
    pub(crate) endpoint: EndpointName,
    pub(crate) worker: WorkerConfig,
    pub(crate) maintenance: MaintenanceConfig,
    pub(crate) back_pressure: Option<BackPressure>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) hook_failure: HookFailurePolicy,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) sinks: Vec<Arc<dyn OutcomeSink>>,
    pub(crate) classifier: Option<Classifier>,
    pub(crate) circuit_breaker: Option<CircuitBreaker>,
    pub(crate) random: Arc<dyn Random>,
    retry: Retry,
    extensions: Extensions,
    registry: ContractRegistry,
    untyped: HashSet<Contract>,
    accept_any: bool,
    handlers: Vec<Registered>,
    layers: Vec<BoxedLayer>,
    problems: Vec<BuildError>,
}

/// Says what kind of failure an error is; `None` leaves the handler's own word.
pub(crate) type Classifier = Arc<dyn Fn(&HandlerError) -> Option<ErrorClass> + Send + Sync>;

type BoxedLayer = Box<dyn Fn(BoxedHandler) -> BoxedHandler + Send + Sync>;
type Check = fn(&Extensions) -> Result<(), FieldError>;

struct Registered {
    takes: Takes,
    service: BoxedHandler,
    options: HandlerOptions,
    check: Check,
}

enum Takes {
    Contract(Contract),
    Pattern(ContractPattern),
}

impl<S> fmt::Debug for InboxBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxBuilder").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl<S: Store + Clone> InboxBuilder<S> {
    pub(crate) fn new(store: S) -> Self {
        let mut extensions = Extensions::new();
        // So that an extractor of the store's, such as a transaction, finds it.
        extensions.insert(store.clone());
        Self {
            store,
            endpoint: EndpointName::default(),
            worker: WorkerConfig::default(),
            maintenance: MaintenanceConfig::default(),
            back_pressure: None,
            hooks: Vec::new(),
            hook_failure: HookFailurePolicy::default(),
            observers: Vec::new(),
            sinks: Vec::new(),
            classifier: None,
            circuit_breaker: None,
            random: Arc::new(SeededRandom::from_entropy()),
            retry: Retry::default(),
            extensions,
            registry: ContractRegistry::new(),
            untyped: HashSet::new(),
            accept_any: false,
            handlers: Vec::new(),
            layers: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The endpoint that this inbox accepts for and works on; by default `default`.
    pub fn endpoint(mut self, endpoint: impl AsRef<str>) -> Self {
        match EndpointName::new(endpoint) {
            Ok(endpoint) => self.endpoint = endpoint,
            Err(error) => self.problems.push(error.into()),
        }
        self
    }

    /// Registers a handler and the contract of its message.
    pub fn handler<M: Message, Args>(self, handler: impl Handler<M, Args>) -> Self {
        self.handler_with(handler, HandlerOptions::new())
    }

    /// Registers a handler with settings of its own.
    pub fn handler_with<M, Args, H>(mut self, handler: H, options: HandlerOptions) -> Self
    where
        M: Message,
        H: Handler<M, Args>,
    {
        match self.registry.register::<M>() {
            Ok(contract) => self.add(Takes::Contract(contract), handler, options),
            Err(error) => self.problems.push(error.into()),
        }
        self
    }

    /// Registers a handler for a contract without a Rust type; it takes [`Raw`].
    pub fn raw_handler<Args, H>(mut self, contract: Contract, handler: H, options: HandlerOptions) -> Self
    where
        H: Handler<Raw, Args>,
    {
        self.untyped.insert(contract.clone());
        self.add(Takes::Contract(contract), handler, options);
        self
    }

    /// Registers a handler for every contract that `takes` and that no other handler has. The store is asked from time
    /// to time which contracts it holds.
    pub fn raw_handler_for<Args, H>(
        mut self,
        takes: impl Fn(&Contract) -> bool + Send + Sync + 'static,
        handler: H,
        options: HandlerOptions,
    ) -> Self
    where
        H: Handler<Raw, Args>,
    {
        self.add(Takes::Pattern(Box::new(takes)), handler, options);
        self
    }

    fn add<M, Args, H: Handler<M, Args>>(&mut self, takes: Takes, handler: H, options: HandlerOptions) {
        self.handlers.push(Registered { takes, service: into_service(handler), options, check: H::check });
    }

    /// Registers a contract that this process accepts and does not handle.
    pub fn contract<M: Message>(mut self) -> Self {
        if let Err(error) = self.registry.register::<M>() {
            self.problems.push(error.into());
        }
        self
    }

    /// Accepts contracts that are not registered: for tools that pass messages on.
    pub fn accept_any_contract(mut self) -> Self {
        self.accept_any = true;
        self
    }

    /// A value that handlers take as [`State`](mailslot_core::State).
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// The retry policy of handlers without one of their own.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// A tower layer around every handler; a later one goes around the earlier ones.
    ///
    /// An error of the layer is a retryable failure of the handler.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<BoxedHandler> + Send + Sync + 'static,
        L::Service: Service<Delivery, Response = Verdict> + Clone + Send + Sync + 'static,
        <L::Service as Service<Delivery>>::Error: Into<BoxError>,
        <L::Service as Service<Delivery>>::Future: Send,
    {
        self.layers.push(Box::new(move |inner| {
            BoxCloneSyncService::new(tower::util::MapErr::new(layer.layer(inner), Into::<BoxError>::into))
        }));
        self
    }

    /// A hook around every dispatch.
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// What a failing after-hook does to a message whose handler succeeded.
    pub fn hook_failure(mut self, policy: HookFailurePolicy) -> Self {
        self.hook_failure = policy;
        self
    }

    /// Watches what happens to messages. It changes nothing and holds up nothing.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Takes what becomes of messages, before it is settled.
    pub fn outcomes(mut self, sink: impl OutcomeSink) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Says what kind of failure a handler's error is, before the handler's own word; `None` leaves it.
    pub fn classify(
        mut self,
        classifier: impl Fn(&HandlerError) -> Option<ErrorClass> + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Some(Arc::new(classifier));
        self
    }

    /// Leaves a dependency alone that fails too often: while the circuit is open, this process begins nothing new.
    pub fn circuit_breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.circuit_breaker = Some(breaker);
        self
    }

    /// How this process works on messages.
    pub fn worker(mut self, config: WorkerConfig) -> Self {
        self.worker = config;
        self
    }

    /// How many handlers run at once.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.worker.concurrency = handlers;
        self
    }

    /// How long a lease holds without a heartbeat, and how often it is extended.
    pub fn lease(mut self, lease: Duration, heartbeat: Duration) -> Self {
        self.worker.lease = lease;
        self.worker.heartbeat = heartbeat;
        self
    }

    /// How this process keeps house.
    pub fn maintenance(mut self, config: MaintenanceConfig) -> Self {
        self.maintenance = config;
        self
    }

    /// Lets accepts wait while messages wait too long to be handled. Without it whatever comes is accepted, which is
    /// right where workers may be away for hours. It does not hold up accepts in the caller's own transaction.
    pub fn back_pressure(mut self, policy: BackPressure) -> Self {
        self.back_pressure = Some(policy);
        self
    }

    /// The source of jitter: for tests.
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }

    /// Feeds the inbox from a broker: what `receiver` hands over is handled by the same handlers, and what has to wait or to
    /// be tried again becomes a stored message of this endpoint.
    pub fn subscribe(self, receiver: impl Receiver) -> SubscriberBuilder<S>
    where
        S: LedgerStore,
    {
        SubscriberBuilder::new(self, Arc::new(receiver))
    }

    /// Checks everything and makes the inbox.
    ///
    /// # Errors
    /// The first misuse: a setting out of bounds, a contract with two types or two handlers, a missing state.
    pub fn build(mut self) -> Result<Inbox<S>, BuildError> {
        if !self.problems.is_empty() {
            return Err(self.problems.remove(0));
        }
        self.worker.check()?;
        self.maintenance.check()?;
        self.back_pressure.as_ref().map_or(Ok(()), BackPressure::check)?;
        self.circuit_breaker.as_ref().map_or(Ok(()), CircuitBreaker::check)?;
        self.retry.check()?;
        let routes = self.routes()?;
        let gate = if self.accept_any {
            ContractGate::Any
        } else {
            ContractGate::Registered(self.registry.contracts().chain(&self.untyped).cloned().collect())
        };
        let extensions = Arc::new(std::mem::take(&mut self.extensions));
        Ok(Inbox::new(self, routes, gate, extensions))
    }

    fn routes(&mut self) -> Result<Routes, BuildError> {
        let mut routes = Routes::default();
        let mut taken = HashSet::new();
        for Registered { takes, service, options, check } in std::mem::take(&mut self.handlers) {
            check(&self.extensions)?;
            let retry = options.retry.unwrap_or_else(|| self.retry.clone());
            retry.check()?;
            let service = self.layers.iter().fold(service, |inner, layer| layer(inner));
            let route = Route { service, retry, time_limit: options.time_limit.or(self.worker.time_limit) };
            match takes {
                Takes::Contract(contract) => {
                    if !taken.insert(contract.clone()) {
                        return Err(BuildError::TwoHandlers { contract });
                    }
                    routes.insert(contract, route);
                }
                Takes::Pattern(pattern) => routes.insert_pattern(pattern, route),
            }
        }
        Ok(routes)
    }
}

/// An inbox cannot be built like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting is out of bounds or missing.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Two Rust types claim one contract.
    #[error(transparent)]
    Contract(#[from] DuplicateContract),
    /// One contract has two handlers.
    #[error("contract {contract} has two handlers: remove one, or give one of the messages another contract")]
    TwoHandlers {
        /// The contract.
        contract: Contract,
    },
}
