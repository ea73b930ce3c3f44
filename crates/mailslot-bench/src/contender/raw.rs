//! What the raw references share.

use mailslot_load::Work;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Most messages in one transaction of the coalescing references: as many as the inbox puts into one.
pub(super) const COALESCE_MAX: usize = 512;

/// Most messages in one claim: as many as the inbox takes by default.
pub(super) const CLAIM_MAX: usize = 200;

/// How many accepts may wait.
pub(super) const QUEUE: usize = 4_096;

/// A message with all that must be known before it is stored.
#[derive(Debug, Clone)]
pub(crate) struct RawMessage {
    pub(crate) id: Uuid,
    /// Key and fingerprint.
    pub(crate) ledger: Option<([u8; 32], [u8; 32])>,
    pub(crate) payload: Vec<u8>,
}

impl RawMessage {
    /// A new message: with a key of its own, hashed as the inbox hashes it, or without.
    pub(crate) fn new(keyed: bool) -> Self {
        let payload = Work::now().payload();
        let ledger = keyed.then(|| {
            let key = Uuid::new_v4().hyphenated().to_string();
            (Sha256::digest(key).into(), Sha256::digest(&payload).into())
        });
        Self { id: Uuid::now_v7(), ledger, payload }
    }
}
