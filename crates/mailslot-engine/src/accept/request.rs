//! The request that a caller builds: what to accept, and how.

use super::error::{AcceptError, new_only, receipt};
use super::writer::AcceptWriter;
use jiff::{SignedDuration, Timestamp};
use mailslot_core::store::AppendGroup;
use mailslot_core::{
    AppendIn, CausationId, Contract, CorrelationId, EncodeError, EndpointName, FieldError, Headers,
    Idempotency, IdempotencyKey, Identity, KeyPolicy, Message, MessageId, Metadata, NewMessage, OnConflict,
    Payload, Priority, Receipt, SessionKey, TenantName, Trace, TraceContext, Visibility,
};
use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// An accept that is being put together. Await it to store the message.
///
/// A value that is out of bounds is remembered and reported when it is awaited, before anything is stored.
#[must_use = "an accept does nothing until it is awaited"]
#[derive(Debug)]
pub struct Accept<'a, T> {
    message: Result<(Contract, Payload), AcceptError>,
    parts: Parts,
    refused: Option<FieldError>,
    gate: &'a ContractGate,
    target: T,
}

#[derive(Debug, Default)]
struct Parts {
    metadata: Metadata,
    key: Option<IdempotencyKey>,
    key_policy: KeyPolicy,
    on_conflict: OnConflict,
    context: Option<TraceContext>,
    correlation: Option<CorrelationId>,
    causation: Option<CausationId>,
}

/// Which contracts an inbox accepts.
#[derive(Debug)]
pub(crate) enum ContractGate {
    /// Those that are registered.
    Registered(std::collections::HashSet<Contract>),
    /// Every one: for tools.
    Any,
}

impl ContractGate {
    pub(crate) fn check(&self, contract: &Contract) -> Result<(), AcceptError> {
        match self {
            Self::Registered(known) if !known.contains(contract) => {
                Err(AcceptError::UnknownContract { contract: contract.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Stores through the accept writer.
#[derive(Debug)]
pub struct Alone<'a>(pub(crate) &'a AcceptWriter);

/// Stores in a transaction of the caller's.
#[derive(Debug)]
pub struct InTransaction<'a, S, C: ?Sized> {
    pub(crate) store: S,
    pub(crate) connection: &'a mut C,
    pub(crate) strict: bool,
}

impl<'a, S, C: ?Sized> Accept<'a, InTransaction<'a, S, C>> {
    /// Makes a message that is known already an error, [`AcceptError::Duplicate`], instead of the first receipt. The
    /// caller then rolls back, so that what the transaction wrote beside the message is not there twice either.
    pub fn strict(mut self) -> Self {
        self.target.strict = true;
        self
    }
}

impl<'a, T> Accept<'a, T> {
    pub(crate) fn typed<M: Message>(
        message: &M,
        endpoint: &EndpointName,
        gate: &'a ContractGate,
        target: T,
    ) -> Self {
        let encoded = NewMessage::encode(message, Metadata::default());
        let message =
            encoded.map(|new| (new.contract, new.payload)).map_err(|error: EncodeError| error.into());
        Self::new(message, endpoint, gate, target)
    }

    pub(crate) fn new(
        message: Result<(Contract, Payload), AcceptError>,
        endpoint: &EndpointName,
        gate: &'a ContractGate,
        target: T,
    ) -> Self {
        let metadata = Metadata { endpoint: endpoint.clone(), ..Metadata::default() };
        Self { message, parts: Parts { metadata, ..Parts::default() }, refused: None, gate, target }
    }

    fn set<V>(mut self, value: Result<V, FieldError>, put: impl FnOnce(&mut Parts, V)) -> Self {
        match value {
            Ok(value) => put(&mut self.parts, value),
            Err(error) => self.refused = self.refused.or(Some(error)),
        }
        self
    }

    /// Makes a repeated accept recognisable within the tenant: it returns the first receipt.
    pub fn idempotency_key(self, key: impl AsRef<str>) -> Self {
        self.set(IdempotencyKey::new(key), |parts, key| parts.key = Some(key))
    }

    /// For how long the key deduplicates; by default until retention removes the message.
    pub fn key_policy(mut self, policy: KeyPolicy) -> Self {
        self.parts.key_policy = policy;
        self
    }

    /// What the same key with other content means; by default an error.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.parts.on_conflict = on_conflict;
        self
    }

    /// Supplies the id. A second accept with it in the same tenant is a duplicate.
    pub fn id(self, id: Uuid) -> Self {
        self.set(MessageId::supplied(id), |parts, id| parts.metadata.identity = Identity::Supplied(id))
    }

    /// Whose the message is.
    pub fn tenant(self, tenant: impl AsRef<str>) -> Self {
        self.set(TenantName::new(tenant), |parts, tenant| parts.metadata.tenant = Some(tenant))
    }

    /// What it is ordered by: messages of a session run one at a time, in acceptance order.
    pub fn session(self, session: impl AsRef<str>) -> Self {
        self.set(SessionKey::new(session), |parts, session| parts.metadata.session = Some(session))
    }

    /// Where it is handled; by default the inbox's own endpoint.
    pub fn endpoint(self, endpoint: impl AsRef<str>) -> Self {
        self.set(EndpointName::new(endpoint), |parts, endpoint| parts.metadata.endpoint = endpoint)
    }

    /// The conversation that it belongs to.
    pub fn correlation(self, correlation: impl ToString) -> Self {
        self.set(CorrelationId::new(correlation.to_string()), |parts, id| parts.correlation = Some(id))
    }

    /// What caused it. Needs a correlation or a trace.
    pub fn causation(self, causation: impl ToString) -> Self {
        self.set(CausationId::new(causation.to_string()), |parts, id| parts.causation = Some(id))
    }

    /// The W3C trace that it belongs to.
    pub fn trace(self, traceparent: impl Into<String>, tracestate: Option<String>) -> Self {
        self.set(TraceContext::new(traceparent, tracestate), |parts, context| parts.context = Some(context))
    }

    /// Not before this delay has passed, counted from the accept by the store's clock.
    pub fn due_in(self, delay: Duration) -> Self {
        let delay = SignedDuration::try_from(delay)
            .map_err(|_| FieldError::new("due_in", "is out of range", "check the unit of the delay"));
        self.set(delay, |parts, delay| parts.metadata.visibility = Visibility::After(delay))
    }

    /// Not before this instant.
    pub fn due_at(self, at: Timestamp) -> Self {
        self.visibility(Visibility::At(at))
    }

    /// When it may first be leased.
    pub fn visibility(mut self, visibility: Visibility) -> Self {
        self.parts.metadata.visibility = visibility;
        self
    }

    /// Its class.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.parts.metadata.priority = priority;
        self
    }

    /// Adds a header.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let mut headers: BTreeMap<_, _> = self.parts.metadata.headers.clone().into();
        headers.insert(name.into(), value.into());
        self.set(Headers::new(headers), |parts, headers| parts.metadata.headers = headers)
    }

    /// The checked message: what [`Inbox::accept_batch`](crate::Inbox::accept_batch) takes.
    ///
    /// # Errors
    /// The first value that is out of bounds, or an unregistered contract.
    pub fn prepare(self) -> Result<NewMessage, AcceptError> {
        self.split().map(|(message, _)| message)
    }

    fn split(self) -> Result<(NewMessage, T), AcceptError> {
        let (contract, payload) = self.message?;
        if let Some(error) = self.refused {
            return Err(error.into());
        }
        self.gate.check(&contract)?;
        let Parts { mut metadata, key, key_policy, on_conflict, context, correlation, causation } =
            self.parts;
        metadata.trace = Trace::from_parts(context, correlation, causation)?;
        if let Some(key) = key {
            metadata.idempotency = Idempotency::Keyed { key, policy: key_policy, on_conflict };
        }
        let message = NewMessage::new(contract, payload, metadata);
        // The machine's clock is close enough to catch a wrong unit; the due time itself is the store's.
        message.check(Timestamp::now())?;
        Ok((message, self.target))
    }
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<'a> IntoFuture for Accept<'a, Alone<'a>> {
    type Output = Result<Receipt, AcceptError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (message, Alone(writer)) = self.split()?;
            let receipts = writer.accept(AppendGroup::from(message)).await.map_err(|batch| batch.error)?;
            Ok(receipts.into_iter().next().expect("one message gives one receipt"))
        })
    }
}

impl<'a, S, C> IntoFuture for Accept<'a, InTransaction<'a, S, C>>
where
    S: AppendIn<C>,
    C: Send + ?Sized,
{
    type Output = Result<Receipt, AcceptError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (message, InTransaction { store, connection, strict }) = self.split()?;
            let answers =
                store.append_in(connection, vec![AppendGroup::from(message)]).await.map_err(Arc::new);
            let answers = answers.map_err(AcceptError::Store)?;
            let answer = answers.into_iter().flatten().next().expect("one message gives one answer");
            let receipt = receipt(answer)?;
            if strict { new_only(receipt) } else { Ok(receipt) }
        })
    }
}
