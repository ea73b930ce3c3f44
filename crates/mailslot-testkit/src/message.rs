//! Builders for the messages of tests: short to write, checked like the real ones.

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use mailslot_core::{
    CausationId, ContentType, Contract, CorrelationId, EndpointName, FieldError, Headers, Idempotency,
    IdempotencyKey, Identity, KeyPolicy, MessageId, Metadata, NewMessage, OnConflict, Payload, Priority,
    SessionKey, TenantName, Trace, Visibility,
};
use std::collections::BTreeMap;

/// A message of `contract` (`name` or `name@version`) with a small payload, due at once.
///
/// # Panics
/// `contract` is no contract.
pub fn message(contract: &str) -> MessageBuilder {
    MessageBuilder {
        contract: valid(contract.parse()),
        payload: Bytes::from_static(b"{}"),
        content_type: ContentType::default(),
        metadata: Metadata::default(),
    }
}

/// Unwraps a value that a test wrote down.
///
/// # Panics
/// The value was refused; the text names the field.
pub fn valid<T>(value: Result<T, FieldError>) -> T {
    value.unwrap_or_else(|error| panic!("a test gave a value that is refused: {error}"))
}

/// A message in the making. A clone builds another message with the same content and a new generated id.
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    contract: Contract,
    payload: Bytes,
    content_type: ContentType,
    metadata: Metadata,
}

impl MessageBuilder {
    /// The bytes; by default `{}`.
    pub fn payload(mut self, bytes: impl Into<Bytes>) -> Self {
        self.payload = bytes.into();
        self
    }

    /// What the bytes are; by default JSON.
    pub fn content_type(mut self, text: &str) -> Self {
        self.content_type = valid(ContentType::new(text));
        self
    }

    /// Supplies the id.
    pub fn id(mut self, id: MessageId) -> Self {
        self.metadata.identity = Identity::Supplied(id);
        self
    }

    /// Gives an idempotency key that is retained and refuses other content.
    pub fn key(mut self, key: &str) -> Self {
        self.metadata.idempotency = Idempotency::keyed(valid(IdempotencyKey::new(key)));
        self
    }

    /// Gives the key another policy.
    ///
    /// # Panics
    /// There is no key yet.
    pub fn policy(mut self, wanted: KeyPolicy) -> Self {
        let Idempotency::Keyed { policy, .. } = &mut self.metadata.idempotency else {
            panic!("give a key before its policy");
        };
        *policy = wanted;
        self
    }

    /// Lets a key with other content answer with the first receipt.
    ///
    /// # Panics
    /// There is no key yet.
    pub fn return_first(mut self) -> Self {
        let Idempotency::Keyed { on_conflict, .. } = &mut self.metadata.idempotency else {
            panic!("give a key before what its conflict means");
        };
        *on_conflict = OnConflict::ReturnFirst;
        self
    }

    /// Whose it is.
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.metadata.tenant = Some(valid(TenantName::new(tenant)));
        self
    }

    /// What it is ordered by.
    pub fn session(mut self, session: &str) -> Self {
        self.metadata.session = Some(valid(SessionKey::new(session)));
        self
    }

    /// Where it is handled; by default the default endpoint.
    pub fn endpoint(mut self, endpoint: &str) -> Self {
        self.metadata.endpoint = valid(EndpointName::new(endpoint));
        self
    }

    /// Its class.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.metadata.priority = priority;
        self
    }

    /// Due so many seconds after the accept.
    pub fn due_in(mut self, seconds: i64) -> Self {
        self.metadata.visibility = Visibility::After(SignedDuration::from_secs(seconds));
        self
    }

    /// Due at an instant.
    pub fn due_at(mut self, at: Timestamp) -> Self {
        self.metadata.visibility = Visibility::At(at);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let mut headers: BTreeMap<String, String> = self.metadata.headers.into();
        headers.insert(name.to_owned(), value.to_owned());
        self.metadata.headers = valid(Headers::new(headers));
        self
    }

    /// How it hangs together with others.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.metadata.trace = trace;
        self
    }

    /// Part of a conversation.
    pub fn correlation(self, correlation: &str) -> Self {
        let correlation = valid(CorrelationId::new(correlation));
        self.trace(Trace::Correlated { correlation })
    }

    /// Part of a conversation, with a known cause.
    pub fn workflow(self, correlation: &str, causation: &str) -> Self {
        let correlation = valid(CorrelationId::new(correlation));
        self.trace(Trace::Workflow { correlation, causation: valid(CausationId::new(causation)) })
    }

    /// The message, with a new id unless one was supplied.
    pub fn build(self) -> NewMessage {
        let payload = valid(Payload::new(self.payload, self.content_type));
        NewMessage::new(self.contract, payload, self.metadata)
    }

    /// Its contract.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// What it says besides its content.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl From<MessageBuilder> for NewMessage {
    fn from(builder: MessageBuilder) -> Self {
        builder.build()
    }
}
