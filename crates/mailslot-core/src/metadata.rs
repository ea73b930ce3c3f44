//! What travels beside a payload: closed variants, no bag of optional fields.

use crate::field::FieldError;
use crate::id::MessageId;
use crate::limits::{DUE_IN_MAX, HEADER_BYTES_MAX, HEADERS_MAX};
use crate::name::{EndpointName, IdempotencyKey, SessionKey, TenantName, check_text};
use crate::trace::Trace;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that an accept says about a message besides its content. The default is: now, once, alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Who chooses the message's id.
    pub identity: Identity,
    /// How a repeated accept is recognised.
    pub idempotency: Idempotency,
    /// When the message may first be leased.
    pub visibility: Visibility,
    /// How it hangs together with others.
    pub trace: Trace,
    /// Whose it is.
    pub tenant: Option<TenantName>,
    /// What it is ordered by.
    pub session: Option<SessionKey>,
    /// Where it is handled.
    pub endpoint: EndpointName,
    /// Which messages go first when not all can.
    pub priority: Priority,
    /// Application headers, carried unchanged.
    pub headers: Headers,
}

/// Who chooses the message's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Identity {
    /// Mailslot makes a UUIDv7.
    #[default]
    Generated,
    /// The caller. A second accept with the same id in the same tenant is a duplicate.
    Supplied(MessageId),
}

/// How a repeated accept is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Idempotency {
    /// It is not: every accept stores a message.
    #[default]
    None,
    /// By a key within the tenant.
    Keyed {
        /// The key.
        key: IdempotencyKey,
        /// For how long it deduplicates.
        policy: KeyPolicy,
        /// What the same key with other content means.
        on_conflict: OnConflict,
    },
}

impl Idempotency {
    /// A key that deduplicates until retention removes the message, and refuses other content.
    pub fn keyed(key: IdempotencyKey) -> Self {
        Self::Keyed { key, policy: KeyPolicy::default(), on_conflict: OnConflict::default() }
    }

    /// The key.
    pub fn key(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::None => None,
            Self::Keyed { key, .. } => Some(key),
        }
    }

    /// For how long the key deduplicates; the default without one.
    pub fn policy(&self) -> KeyPolicy {
        match self {
            Self::None => KeyPolicy::default(),
            Self::Keyed { policy, .. } => *policy,
        }
    }
}

/// For how long an idempotency key deduplicates. A dead letter pins its key under every policy but `UntilStarted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPolicy {
    /// Until retention removes the message.
    #[default]
    Retained,
    /// Until the message is completed, skipped or cancelled: "at most one waiting or running".
    UntilFinished,
    /// Until the message is first leased: "at most one waiting".
    UntilStarted,
}

/// What an accept with a known key and other content answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// An error: two different requests share a key by mistake.
    #[default]
    Refuse,
    /// The first receipt, as if the content were the same.
    ReturnFirst,
}

/// When a message may first be leased. Time is the store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Visibility {
    /// At once.
    #[default]
    Immediate,
    /// From an instant on; a past one means at once.
    At(Timestamp),
    /// After a delay, counted from the accept.
    After(SignedDuration),
}

impl Visibility {
    /// Checks a delay or instant against the bounds.
    ///
    /// # Errors
    /// A negative delay, or a due time more than ten years ahead of `now`.
    pub fn check(self, now: Timestamp) -> Result<(), FieldError> {
        let ahead = match self {
            Self::Immediate => return Ok(()),
            Self::At(at) => at.duration_since(now),
            Self::After(delay) if delay.is_negative() => {
                return Err(FieldError::new("due_in", "is negative", "use zero for at once"));
            }
            Self::After(delay) => delay,
        };
        let max = SignedDuration::try_from(DUE_IN_MAX).unwrap_or(SignedDuration::MAX);
        if ahead > max {
            return Err(FieldError::new(
                "due",
                "is more than ten years ahead",
                "check the unit of the delay",
            ));
        }
        Ok(())
    }

    /// The due time of a message that is accepted at `accepted_at`.
    pub fn due_at(self, accepted_at: Timestamp) -> Timestamp {
        match self {
            Self::Immediate => accepted_at,
            Self::At(at) => at.max(accepted_at),
            Self::After(delay) => accepted_at.saturating_add(delay).unwrap_or(Timestamp::MAX),
        }
    }
}

/// Which messages go first when not all can. A lower class is set back, never starved: see
/// [`PRIORITY_STEP`](crate::limits::PRIORITY_STEP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before the others.
    High,
    /// The default.
    #[default]
    Normal,
    /// After the others.
    Low,
}

impl Priority {
    /// Every class, highest first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The stored form: 0 is the highest.
    pub fn rank(self) -> u8 {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }

    /// Reads the stored form.
    pub fn from_rank(rank: u8) -> Option<Self> {
        Self::ALL.get(usize::from(rank)).copied()
    }
}

/// Application headers: bounded, text only, in name order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// Checks names and values.
    ///
    /// # Errors
    /// More than 64 headers, more than 16 KiB in all, a blank name, or a control character.
    pub fn new(headers: BTreeMap<String, String>) -> Result<Self, FieldError> {
        if headers.len() > HEADERS_MAX {
            let fix = format!("send at most {HEADERS_MAX}, or put the values into the payload");
            return Err(FieldError::new("headers", format!("are {} in number", headers.len()), fix));
        }
        let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > HEADER_BYTES_MAX {
            let fix = format!("send at most {HEADER_BYTES_MAX} bytes, or put the values into the payload");
            return Err(FieldError::new("headers", format!("have {bytes} bytes"), fix));
        }
        for (name, value) in &headers {
            check_text("headers", name, HEADER_BYTES_MAX)?;
            if value.chars().any(char::is_control) {
                return Err(FieldError::new("headers", "have a control character in a value", "remove it"));
            }
        }
        Ok(Self(headers))
    }

    /// The value of one header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<BTreeMap<String, String>> for Headers {
    type Error = FieldError;
    fn try_from(headers: BTreeMap<String, String>) -> Result<Self, FieldError> {
        Self::new(headers)
    }
}

impl From<Headers> for BTreeMap<String, String> {
    fn from(headers: Headers) -> Self {
        headers.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visibility_refuses_wrong_units_and_clamps_the_past() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(
            Visibility::After(SignedDuration::from_secs(-1)).check(now).unwrap_err().field(),
            "due_in"
        );
        assert!(Visibility::After(SignedDuration::from_hours(24 * 3651)).check(now).is_err());
        assert!(Visibility::At(Timestamp::MAX).check(now).is_err());
        assert!(Visibility::At(Timestamp::MIN).check(now).is_ok());
        assert_eq!(Visibility::At(Timestamp::MIN).due_at(now), now);
        assert_eq!(Visibility::After(SignedDuration::MAX).due_at(now), Timestamp::MAX);
    }

    #[test]
    fn headers_are_bounded() {
        let many = (0..65).map(|i| (format!("h{i}"), String::new())).collect();
        assert!(Headers::new(many).is_err());
        assert!(Headers::new(BTreeMap::from([("h".into(), "x".repeat(HEADER_BYTES_MAX))])).is_err());
        assert!(Headers::new(BTreeMap::from([("h".into(), "a\r\nb".into())])).is_err());
        assert!(Headers::new(BTreeMap::from([(" ".into(), "x".into())])).is_err());
        assert!(Headers::new(BTreeMap::from([("h".into(), String::new())])).is_ok());
    }
}
