//! How much a subscriber believes of what a publisher wrote.

use jiff::{SignedDuration, Timestamp};
use mailslot_core::broker::{BrokerDelivery, Incoming};
use mailslot_core::limits::PAYLOAD_BYTES_MAX;
use mailslot_core::{FieldError, Priority, TenantName, Visibility};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The header that names the tenant of a message, if headers are trusted.
pub const TENANT_HEADER: &str = "mailslot-tenant";

/// The header that says from when on a message may be handled, as an RFC 3339 instant, if headers are trusted.
pub const DUE_HEADER: &str = "mailslot-due";

/// The header that says after how many seconds a message may be handled, if headers are trusted.
pub const DUE_IN_HEADER: &str = "mailslot-due-in";

/// The header with the priority of a message, `high`, `normal` or `low`, if headers are trusted.
pub const PRIORITY_HEADER: &str = "mailslot-priority";

type Authorize = Arc<dyn Fn(&BrokerDelivery) -> Result<(), FieldError> + Send + Sync>;

/// What a delivery is recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifyBy {
    /// The publisher's message id: what makes one event one, by whichever way it comes.
    MessageId,
    /// The broker's own id of the delivery, with its destination: nothing that a publisher wrote. Only for brokers that
    /// [keep it](mailslot_core::broker::BrokerCapabilities::stable_delivery_id).
    DeliveryId,
}

/// What a subscriber believes and takes. By default it recognises a delivery by the publisher's message id, and nothing else
/// that a publisher wrote decides about tenant, due time or priority.
#[derive(Clone)]
#[must_use = "give it to `SubscriberBuilder::safety`"]
pub struct Safety {
    pub(super) identify_by: IdentifyBy,
    require_identity: bool,
    trust_headers: bool,
    payload_max: usize,
    authorize: Option<Authorize>,
}

impl fmt::Debug for Safety {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Safety")
            .field("identify_by", &self.identify_by)
            .field("require_identity", &self.require_identity)
            .field("trust_headers", &self.trust_headers)
            .field("payload_max", &self.payload_max)
            .finish_non_exhaustive()
    }
}

impl Default for Safety {
    fn default() -> Self {
        Self::new()
    }
}

impl Safety {
    /// The default.
    pub fn new() -> Self {
        Self {
            identify_by: IdentifyBy::MessageId,
            require_identity: false,
            trust_headers: false,
            payload_max: PAYLOAD_BYTES_MAX,
            authorize: None,
        }
    }

    /// What a delivery is recognised by.
    pub fn identify_by(mut self, identify_by: IdentifyBy) -> Self {
        self.identify_by = identify_by;
        self
    }

    /// Refuses deliveries without a usable id, instead of handling them unrecognised.
    pub fn require_identity(mut self) -> Self {
        self.require_identity = true;
        self
    }

    /// Lets publishers choose tenant, due time and priority by the headers [`TENANT_HEADER`], [`DUE_HEADER`], [`DUE_IN_HEADER`]
    /// and [`PRIORITY_HEADER`]. Only for destinations that nobody else may publish to.
    pub fn trust_headers(mut self) -> Self {
        self.trust_headers = true;
        self
    }

    /// The largest content that is taken, in bytes. Default and most: what a store takes.
    pub fn payload_max(mut self, bytes: usize) -> Self {
        self.payload_max = bytes;
        self
    }

    /// Says whether a delivery may come in at all. One that may not becomes a dead letter with the reason that is given. It is
    /// called for every delivery and must not wait or panic.
    pub fn authorize(
        mut self,
        authorize: impl Fn(&BrokerDelivery) -> Result<(), FieldError> + Send + Sync + 'static,
    ) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    pub(super) fn check(&self) -> Result<(), FieldError> {
        crate::config::within("safety.payload_max", self.payload_max, 1, PAYLOAD_BYTES_MAX)
    }

    /// Refuses what may not come in, before it is read.
    pub(super) fn admit(&self, delivery: &BrokerDelivery) -> Result<(), FieldError> {
        let bytes = delivery.message.payload.len();
        if bytes > self.payload_max {
            let fix = format!("send at most {}", self.payload_max);
            return Err(FieldError::new("payload", format!("has {bytes} bytes"), fix));
        }
        self.authorize.as_ref().map_or(Ok(()), |authorize| authorize(delivery))
    }

    /// What the delivery is recognised by, as text.
    pub(super) fn id_of(&self, message_id: Option<&str>, delivery: &BrokerDelivery) -> Option<String> {
        match self.identify_by {
            IdentifyBy::MessageId => message_id.map(str::to_owned),
            IdentifyBy::DeliveryId => Some(format!("{}/{}", delivery.destination, delivery.delivery_id)),
        }
    }

    /// Whether what cannot be recognised is refused.
    pub(super) fn requires_identity(&self) -> bool {
        self.require_identity
    }

    /// Lets the headers decide, if they are trusted.
    pub(super) fn hear(
        &self,
        incoming: &mut Incoming,
        headers: &BTreeMap<String, String>,
    ) -> Result<(), FieldError> {
        if !self.trust_headers {
            return Ok(());
        }
        let metadata = &mut incoming.metadata;
        if let Some(tenant) = headers.get(TENANT_HEADER) {
            metadata.tenant = Some(TenantName::new(tenant)?);
        }
        if let Some(priority) = headers.get(PRIORITY_HEADER) {
            metadata.priority = read_priority(priority)?;
        }
        if let Some(visibility) = due(headers)? {
            metadata.visibility = visibility;
        }
        Ok(())
    }
}

/// When to be handled. Of two headers the delay counts.
fn due(headers: &BTreeMap<String, String>) -> Result<Option<Visibility>, FieldError> {
    if let Some(seconds) = headers.get(DUE_IN_HEADER) {
        let seconds: u32 = seconds.parse().map_err(|_| {
            let fix = format!("write `{DUE_IN_HEADER}` as a whole number");
            FieldError::new("due_in", "is no number of seconds", fix)
        })?;
        return Ok(Some(Visibility::After(SignedDuration::from_secs(seconds.into()))));
    }
    let Some(at) = headers.get(DUE_HEADER) else { return Ok(None) };
    let at: Timestamp = at.parse().map_err(|_| {
        let fix = format!("write `{DUE_HEADER}` as 2030-01-31T12:00:00Z");
        FieldError::new("due", "is no instant", fix)
    })?;
    Ok(Some(Visibility::At(at)))
}

fn read_priority(text: &str) -> Result<Priority, FieldError> {
    match text {
        "high" => Ok(Priority::High),
        "normal" => Ok(Priority::Normal),
        "low" => Ok(Priority::Low),
        _ => Err(FieldError::new("priority", "is unknown", "use one of high, normal, low")),
    }
}
