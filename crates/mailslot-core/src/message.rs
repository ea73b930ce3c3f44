//! A message on its way into the store, and as the store holds it.

use crate::codec::{Codec, Payload};
use crate::contract::{Contract, Message};
use crate::field::FieldError;
use crate::id::{MessageId, Seq};
use crate::metadata::{Headers, Identity, Metadata, Priority, Visibility};
use crate::name::{EndpointName, IdempotencyKey, SessionKey, TenantName};
use crate::trace::Trace;
use crate::{CodecError, ContentType};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// A message that passed every check of the edge and is ready to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Its identity, generated or supplied.
    pub id: MessageId,
    /// Whether the caller supplied the id, so that it deduplicates.
    pub id_supplied: bool,
    /// The contract of the payload.
    pub contract: Contract,
    /// The content.
    pub payload: Payload,
    /// Everything else. `identity` is resolved into `id`.
    pub metadata: Metadata,
}

impl NewMessage {
    /// Encodes a typed message.
    ///
    /// # Errors
    /// The codec failed, or a field passes its bound.
    pub fn encode<M: Message>(message: &M, metadata: Metadata) -> Result<Self, EncodeError> {
        let bytes = M::Codec::encode(message)?;
        let content_type = ContentType::new(<M::Codec as Codec<M>>::CONTENT_TYPE)?;
        Ok(Self::new(Contract::of::<M>(), Payload::new(bytes, content_type)?, metadata))
    }

    /// Takes content that is already encoded.
    pub fn new(contract: Contract, payload: Payload, metadata: Metadata) -> Self {
        let (id, id_supplied) = match metadata.identity {
            Identity::Generated => (MessageId::generate(), false),
            Identity::Supplied(id) => (id, true),
        };
        Self { id, id_supplied, contract, payload, metadata }
    }

    /// The endpoint and contract: which workers may take it.
    pub fn lane(&self) -> (&EndpointName, &Contract) {
        (&self.metadata.endpoint, &self.contract)
    }

    /// The bound checks that need the time.
    ///
    /// # Errors
    /// See [`Visibility::check`].
    pub fn check(&self, now: Timestamp) -> Result<(), FieldError> {
        self.metadata.visibility.check(now)
    }

    /// SHA-256 of contract, content type and payload: tells whether a repeated key carries the same content.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        for part in [self.contract.name().as_bytes(), self.payload.content_type().as_str().as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update(self.contract.version().to_be_bytes());
        hash.update(self.payload.bytes());
        Fingerprint(hash.finalize().into())
    }

    /// The ledger keys that protect this message: of its supplied id, then of its idempotency key.
    pub fn ledger_keys(&self) -> impl Iterator<Item = LedgerKey> + use<> {
        let LedgerKeys { id, key } = self.ledger_keys_by_kind();
        id.into_iter().chain(key)
    }

    /// The ledger keys that protect this message, by what they are made of.
    pub fn ledger_keys_by_kind(&self) -> LedgerKeys {
        let tenant = self.metadata.tenant.as_ref();
        LedgerKeys {
            id: self.id_supplied.then(|| LedgerKey::of_id(tenant, self.id)),
            key: self.metadata.idempotency.key().map(|key| LedgerKey::of_key(tenant, key)),
        }
    }

    /// The due time if it is accepted at `accepted_at`.
    pub fn due_at(&self, accepted_at: Timestamp) -> Timestamp {
        let visibility: Visibility = self.metadata.visibility;
        visibility.due_at(accepted_at)
    }
}

/// A typed message could not be made ready for the store. Nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The codec failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A field passes its bound.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// SHA-256 of a message's contract and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The address of a record in the ledger: a SHA-256 of a length-delimited encoding, so that two different
/// things never share one and no collation folds two into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerKey(pub [u8; 32]);

impl LedgerKey {
    /// Protects a supplied id within its tenant.
    pub fn of_id(tenant: Option<&TenantName>, id: MessageId) -> Self {
        Self::of("id", tenant, id.as_uuid().as_bytes())
    }

    /// Protects an idempotency key within its tenant.
    pub fn of_key(tenant: Option<&TenantName>, key: &IdempotencyKey) -> Self {
        Self::of("key", tenant, key.as_str().as_bytes())
    }

    fn of(kind: &str, tenant: Option<&TenantName>, value: &[u8]) -> Self {
        let mut hash = Sha256::new();
        // A missing tenant and every named one differ in the first byte of their part.
        let tenant = tenant.map_or_else(Vec::new, |tenant| [b"t", tenant.as_str().as_bytes()].concat());
        for part in [kind.as_bytes(), &tenant, value] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// The ledger keys of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerKeys {
    /// Of its supplied id.
    pub id: Option<LedgerKey>,
    /// Of its idempotency key.
    pub key: Option<LedgerKey>,
}

/// The stored form of a message. It never changes after the accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Its place in acceptance order.
    pub seq: Seq,
    /// Its identity within its tenant.
    pub id: MessageId,
    /// Where it is handled.
    pub endpoint: EndpointName,
    /// The contract of the payload.
    pub contract: Contract,
    /// The content.
    pub payload: Payload,
    /// Whose it is.
    pub tenant: Option<TenantName>,
    /// What it is ordered by.
    pub session: Option<SessionKey>,
    /// The key it was accepted with.
    pub idempotency_key: Option<IdempotencyKey>,
    /// How it hangs together with others.
    pub trace: Trace,
    /// Its class.
    pub priority: Priority,
    /// Application headers.
    pub headers: Headers,
    /// When it was accepted, by the store's clock.
    pub accepted_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_keys_never_run_together() {
        let tenant = |name| Some(TenantName::new(name).unwrap());
        let key = |text| IdempotencyKey::new(text).unwrap();
        let keys = [
            LedgerKey::of_key(None, &key("ab")),
            LedgerKey::of_key(tenant("a").as_ref(), &key("b")),
            LedgerKey::of_key(tenant("ab").as_ref(), &key("b")),
            LedgerKey::of_key(tenant("t").as_ref(), &key("ab")),
            LedgerKey::of_key(None, &key("AB")),
            LedgerKey::of_key(None, &key("ab ")),
            LedgerKey::of_key(None, &key("e\u{301}")),
            LedgerKey::of_key(None, &key("\u{e9}")),
        ];
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
