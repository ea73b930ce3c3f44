//! The surroundings of a message while it is handled.

use crate::codec::Payload;
use crate::delivered::DeliveryIdentity;
use crate::error::StoreError;
use crate::id::Attempt;
use crate::message::Envelope;
use crate::outcome::Settlement;
use crate::store::{Concluded, LeaseToken, Leased, Settled};
use async_trait::async_trait;
use event_listener::Event;
use jiff::Timestamp;
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// What a handler can know about the message and its run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<ContextInner>,
}

#[derive(Debug)]
struct ContextInner {
    leased: Leased,
    arrived: Option<Arrived>,
    cancellation: Cancellation,
    extensions: Arc<Extensions>,
    enlisted: Mutex<Option<Arc<dyn EnlistedTransaction>>>,
}

impl Context {
    /// The context of one delivery. Made by the engine, and by tests of handlers.
    pub fn new(leased: Leased, cancellation: Cancellation, extensions: Arc<Extensions>) -> Self {
        Self::of(leased, None, cancellation, extensions)
    }

    /// The context of a message that a broker delivered and that no store holds: its number and its lease are those of
    /// nothing, and this is its first attempt.
    pub fn of_arrival(
        envelope: Envelope,
        arrived: Arrived,
        cancellation: Cancellation,
        extensions: Arc<Extensions>,
    ) -> Self {
        let due_at = envelope.accepted_at;
        let lease = LeaseToken { owner: Uuid::nil(), generation: 0 };
        let leased = Leased { envelope, attempt: Attempt::FIRST.leased(), lease, due_at };
        Self::of(leased, Some(arrived), cancellation, extensions)
    }

    fn of(
        leased: Leased,
        arrived: Option<Arrived>,
        cancellation: Cancellation,
        extensions: Arc<Extensions>,
    ) -> Self {
        let inner = ContextInner { leased, arrived, cancellation, extensions, enlisted: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// The message as it is stored: ids, contract, tenant, session, trace, headers.
    pub fn envelope(&self) -> &Envelope {
        &self.inner.leased.envelope
    }

    /// Which attempt this is; `number` counts from 1.
    pub fn attempt(&self) -> Attempt {
        self.inner.leased.attempt
    }

    /// Since when the message was due.
    pub fn due_at(&self) -> Timestamp {
        self.inner.leased.due_at
    }

    /// How the broker delivered it. `None`: the message came out of the store.
    pub fn arrived(&self) -> Option<&Arrived> {
        self.inner.arrived.as_ref()
    }

    /// The fence. Pass its `generation` to systems that can refuse an older one; that of a message which comes straight from
    /// a broker is 0.
    pub fn lease(&self) -> LeaseToken {
        self.inner.leased.lease
    }

    /// Tells when the handler should stop, and why.
    pub fn cancellation(&self) -> &Cancellation {
        &self.inner.cancellation
    }

    /// What the program registered under this type.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.inner.extensions.get::<T>()
    }

    /// Makes a transaction the one in which this message is settled: it commits with the completion, and is rolled
    /// back with every other verdict and when the lease is lost.
    ///
    /// # Errors
    /// Another one is enlisted already.
    pub fn enlist(&self, transaction: Arc<dyn EnlistedTransaction>) -> Result<(), super::HandlerError> {
        let mut slot = self.slot();
        if slot.is_some() {
            return Err(super::HandlerError::permanent(
                "the handler takes two transactions: take one and share it",
            ));
        }
        *slot = Some(transaction);
        Ok(())
    }

    /// The enlisted transaction, once.
    pub fn take_enlisted(&self) -> Option<Arc<dyn EnlistedTransaction>> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<dyn EnlistedTransaction>>> {
        self.inner.enlisted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a broker delivered a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// The queue, topic or subscription that it came from.
    pub destination: String,
    /// The broker's own id of it.
    pub delivery_id: String,
    /// What it is recognised by when it comes again. `None`: it cannot be, or nobody asked for it.
    pub identity: Option<DeliveryIdentity>,
    /// How often the broker handed it out before, where it counts.
    pub redeliveries: Option<u32>,
}

/// A transaction in which a handler works and its message is settled.
#[async_trait]
pub trait EnlistedTransaction: Send + Sync + fmt::Debug {
    /// Checks the lease, settles and commits, or rolls back when the lease is lost.
    async fn settle_and_commit(&self, settlement: Settlement) -> Result<Settled, StoreError>;

    /// Records that a delivery was handled and commits, for a message that came straight from a broker; or rolls back when
    /// it has come to something before, which is then the answer. Without an identity it only commits.
    async fn record_and_commit(&self, identity: Option<&DeliveryIdentity>) -> Result<Concluded, StoreError>;

    /// Undoes what the handler wrote.
    async fn roll_back(&self) -> Result<(), StoreError>;
}

/// A message on its way to its handler: what a tower layer around a handler sees.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its surroundings.
    pub context: Context,
}

impl Delivery {
    /// Its content.
    pub fn payload(&self) -> &Payload {
        &self.context.envelope().payload
    }
}

/// Tells a handler that it should stop. Clones share it; the first cause stays.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    inner: Arc<CancellationInner>,
}

#[derive(Debug, Default)]
struct CancellationInner {
    cause: AtomicU8,
    event: Event,
}

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// The lease is gone: another worker may have the message, and this one's verdict will be refused.
    LeaseLost,
    /// Someone asked to cancel the message: an error or a retry now ends it as cancelled.
    Requested,
    /// The process is stopping: finish within the grace time. An error or a retry now gives the message back without
    /// using up the attempt.
    Shutdown,
}

impl Cancellation {
    /// Nobody asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the handler to stop.
    pub fn cancel(&self, cause: CancelCause) {
        let code = match cause {
            CancelCause::LeaseLost => 1,
            CancelCause::Requested => 2,
            CancelCause::Shutdown => 3,
        };
        let first = self.inner.cause.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.inner.event.notify(usize::MAX);
        }
    }

    /// Why it should stop, if it should.
    pub fn cause(&self) -> Option<CancelCause> {
        match self.inner.cause.load(Ordering::Acquire) {
            1 => Some(CancelCause::LeaseLost),
            2 => Some(CancelCause::Requested),
            3 => Some(CancelCause::Shutdown),
            _ => None,
        }
    }

    /// Waits until the handler should stop.
    ///
    /// # Cancel safety
    /// Safe to drop at any time.
    pub async fn cancelled(&self) -> CancelCause {
        loop {
            let listener = self.inner.event.listen();
            if let Some(cause) = self.cause() {
                return cause;
            }
            listener.await;
        }
    }
}

/// Values that a program registers for its handlers, by type.
#[derive(Default)]
pub struct Extensions {
    values: HashMap<TypeId, (&'static str, Box<dyn Any + Send + Sync>)>,
}

impl Extensions {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a value; a later one of the same type replaces it.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), (type_name::<T>(), Box::new(value)));
    }

    /// The value of a type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let (_, value) = self.values.get(&TypeId::of::<T>())?;
        value.downcast_ref::<T>().cloned()
    }

    /// Whether there is a value of a type.
    pub fn contains<T: Clone + Send + Sync + 'static>(&self) -> bool {
        self.values.contains_key(&TypeId::of::<T>())
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.values().map(|(name, _)| name)).finish()
    }
}
