//! What a subscriber recognises a redelivery by: the endpoint on which it handles, and the id that the broker delivered.

use crate::id::MessageId;
use crate::limits::NAME_UNITS_MAX;
use crate::name::EndpointName;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// A delivery that can be recognised when it comes again.
///
/// Both parts are taken byte by byte: case and white space count, nothing is normalised. The endpoint is the configured
/// one of the subscriber and never an address in the message, so that endpoints that share one store stay apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryIdentity {
    endpoint: EndpointName,
    message_id: Arc<str>,
}

impl DeliveryIdentity {
    /// The identity of what was delivered on `endpoint` under `message_id`.
    ///
    /// # Errors
    /// There is no usable id. Such a delivery is handled all the same, and cannot be recognised later.
    pub fn new(endpoint: &EndpointName, message_id: Option<&str>) -> Result<Self, Unrecognisable> {
        let message_id = message_id.ok_or(Unrecognisable::Missing)?;
        if message_id.trim().is_empty() {
            return Err(Unrecognisable::Blank);
        }
        let units = message_id.encode_utf16().count();
        if units > NAME_UNITS_MAX {
            return Err(Unrecognisable::TooLong { units });
        }
        Ok(Self { endpoint: endpoint.clone(), message_id: Arc::from(message_id) })
    }

    /// Where it is handled.
    pub fn endpoint(&self) -> &EndpointName {
        &self.endpoint
    }

    /// The id under which the broker delivered it.
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// What it is stored by.
    pub fn key(&self) -> DeliveryKey {
        DeliveryKey::of(self.endpoint.as_str(), &self.message_id)
    }
}

/// Why a delivery cannot be recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecognisable {
    /// It has no message id.
    Missing,
    /// Its message id is empty or all white space.
    Blank,
    /// Its message id is longer than [`NAME_UNITS_MAX`].
    TooLong {
        /// How long, in UTF-16 units.
        units: usize,
    },
}

impl fmt::Display for Unrecognisable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the message has no id; let its publisher set one"),
            Self::Blank => f.write_str("the message id is blank; let its publisher set a visible one"),
            Self::TooLong { units } => write!(
                f,
                "the message id has {units} UTF-16 units; let its publisher use {NAME_UNITS_MAX} or fewer"
            ),
        }
    }
}

/// SHA-256 of endpoint and message id.
///
/// Hashed is the UTF-8 of the endpoint's length in UTF-16 units as a decimal number, U+001F, the endpoint, U+001F and the
/// message id. The length in front makes the encoding injective whatever the id contains.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey(pub [u8; 32]);

impl DeliveryKey {
    fn of(endpoint: &str, message_id: &str) -> Self {
        const SEPARATOR: &[u8] = b"\x1f";
        let mut hash = Sha256::new();
        hash.update(endpoint.encode_utf16().count().to_string());
        for part in [SEPARATOR, endpoint.as_bytes(), SEPARATOR, message_id.as_bytes()] {
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl DeliveryKey {
    /// The id of the message that the delivery becomes if it is stored: the same whenever and wherever that happens, so that
    /// whoever settles a handoff can know it before the message is there.
    pub fn stored_id(&self) -> MessageId {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0[..16]);
        MessageId::of_hash(half)
    }
}

impl fmt::Debug for DeliveryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeliveryKey(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(endpoint: &str, message_id: &str) -> DeliveryIdentity {
        DeliveryIdentity::new(&EndpointName::new(endpoint).unwrap(), Some(message_id)).unwrap()
    }

    #[test]
    fn keys_are_what_other_programs_compute() {
        for (endpoint, message_id, key) in [
            ("BillingEndpoint", "m1", "45dfc57a1f0406b519d5f26feb6dcb8673488873ddce00dae7b0beea28bea6d8"),
            ("BillingEndpoint", "m1 ", "37e1d35fed803214072ffce1a5ab0c264156c84193bface44f7eb6a2c65ffddd"),
            ("billingendpoint", "m1", "8d65312ee1311951088f68a15a148385ff8c1b2b8d54dbac7e2905595d817ddb"),
            ("a", "b", "e1a9b5295968af3b48aac6ddf2308078d5fd685209b255d229a3e0bfc545e152"),
            ("\u{e9}\u{1f600}", "x", "ff9071b2b6d7e5457c5914153304c29801ec0770aa06fe97f14633fa1c083a0a"),
        ] {
            let found = format!("{:?}", identity(endpoint, message_id).key());
            assert_eq!(found, format!("DeliveryKey({key})"), "{endpoint} {message_id:?}");
        }
    }

    #[test]
    fn no_id_can_look_like_part_of_an_endpoint() {
        let keys = [
            DeliveryKey::of("a", "b\u{1f}c"),
            DeliveryKey::of("a\u{1f}b", "c"),
            DeliveryKey::of("1\u{1f}a", "b"),
            DeliveryKey::of("a", "b"),
        ];
        for (place, key) in keys.iter().enumerate() {
            assert!(keys[..place].iter().all(|other| other != key));
        }
    }

    #[test]
    fn the_id_of_the_stored_message_is_a_valid_one_of_its_own_version() {
        let id = identity("a", "b").key().stored_id();
        assert_eq!(id, identity("a", "b").key().stored_id());
        assert_ne!(id, identity("a", "c").key().stored_id());
        assert_eq!(id.as_uuid().get_version_num(), 8);
        assert_eq!(id.as_uuid().get_variant(), uuid::Variant::RFC4122);
    }

    #[test]
    fn what_is_missing_blank_or_too_long_cannot_be_recognised() {
        let endpoint = EndpointName::default();
        let new = |id: Option<&str>| {
            DeliveryIdentity::new(&endpoint, id).map(|found| found.message_id().to_owned())
        };
        assert_eq!(new(None), Err(Unrecognisable::Missing));
        for blank in ["", " ", "\t\u{2003}\n"] {
            assert_eq!(new(Some(blank)), Err(Unrecognisable::Blank));
        }
        let longest = "\u{1f600}".repeat(256);
        assert_eq!(new(Some(&longest)).as_deref(), Ok(longest.as_str()));
        assert_eq!(new(Some(&"x".repeat(513))), Err(Unrecognisable::TooLong { units: 513 }));
    }
}
