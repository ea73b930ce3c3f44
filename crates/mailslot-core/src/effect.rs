//! Ids that do not change when a handler runs again.

use crate::field::FieldError;
use crate::id::MessageId;
use crate::limits::NAME_UNITS_MAX;
use crate::name::check_text;
use sha2::{Digest, Sha256};
use std::fmt;

/// The id of one effect of a workflow: what a transition publishes or accepts. It follows from the workflow, the transition and
/// the effect's place among those of the transition, so that a handler that runs again after a crash makes the same ids, and
/// whoever gets its effects twice can tell.
///
/// ```
/// use mailslot_core::EffectId;
///
/// let id = EffectId::new("order 7", "paid", 0)?;
/// assert_eq!(id, EffectId::new("order 7", "paid", 0)?);
/// assert_ne!(id, EffectId::new("order 7", "paid", 1)?);
/// # Ok::<(), mailslot_core::FieldError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EffectId(MessageId);

impl EffectId {
    /// The id of the effect number `ordinal` of `transition` in `workflow`. Take what stays the same when the handler runs again:
    /// the workflow's own id, the name of its transition and its version, never a time or a count of attempts.
    ///
    /// # Errors
    /// A name is blank or too long.
    pub fn new(workflow: &str, transition: &str, ordinal: u32) -> Result<Self, FieldError> {
        check_text("workflow", workflow, NAME_UNITS_MAX)?;
        check_text("transition", transition, NAME_UNITS_MAX)?;
        let mut hash = Sha256::new();
        for part in [workflow, transition] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update(ordinal.to_be_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        Ok(Self(MessageId::of_hash(half)))
    }

    /// As the id of a message that is accepted into an inbox.
    pub fn message_id(self) -> MessageId {
        self.0
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_effects_share_an_id() {
        let effects =
            [("a", "b", 0), ("a", "b", 1), ("ab", "", 0), ("a", "bc", 0), ("ab", "c", 0), ("b", "a", 0)];
        let ids: Vec<_> = effects.iter().filter_map(|(w, t, o)| EffectId::new(w, t, *o).ok()).collect();
        assert_eq!(ids.len(), 5, "a blank transition is refused");
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id));
        }
    }

    #[test]
    fn an_id_is_the_same_in_every_version_of_this_program() {
        let id = EffectId::new("order 7", "paid", 0).unwrap();
        assert_eq!(id.to_string().len(), 36);
        assert_eq!(id.message_id().as_uuid().get_version_num(), 8);
    }
}
