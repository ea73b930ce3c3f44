//! Selecting messages, and paging through them.

use crate::contract::Contract;
use crate::field::FieldError;
use crate::id::{MessageId, Seq};
use crate::limits::PAGE_MAX;
use crate::name::{CausationId, CorrelationId, EndpointName, IdempotencyKey, SessionKey, TenantName};
use crate::outcome::Reason;
use crate::state::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which messages: those that match every part that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// One of these ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<MessageId>>,
    /// In one of these states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statuses: Option<Vec<Status>>,
    /// Of this endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointName>,
    /// Of this contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// Of this tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// Of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionKey>,
    /// Accepted with this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Of this conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<CorrelationId>,
    /// With this cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation: Option<CausationId>,
    /// Whose last outcome has this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// In this generation: requeued so many times. What an operator has seen, so that a change meets nothing newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// Accepted at or after this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_from: Option<Timestamp>,
    /// Accepted before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_before: Option<Timestamp>,
}

impl Filter {
    /// Exactly these messages.
    pub fn of_ids(ids: impl IntoIterator<Item = MessageId>) -> Self {
        Self { ids: Some(ids.into_iter().collect()), ..Self::default() }
    }

    /// Whether it selects everything.
    pub fn is_unrestricted(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a message matches. The rule that every store's query follows.
    pub fn matches(&self, record: &super::MessageRecord) -> bool {
        fn eq<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none_or(|wanted| Some(wanted) == found)
        }
        let envelope = &record.envelope;
        self.ids.as_ref().is_none_or(|ids| ids.contains(&envelope.id))
            && self.statuses.as_ref().is_none_or(|statuses| statuses.contains(&record.status))
            && eq(self.endpoint.as_ref(), Some(&envelope.endpoint))
            && eq(self.contract.as_ref(), Some(&envelope.contract))
            && eq(self.tenant.as_ref(), envelope.tenant.as_ref())
            && eq(self.session.as_ref(), envelope.session.as_ref())
            && eq(self.idempotency_key.as_ref(), envelope.idempotency_key.as_ref())
            && eq(self.correlation.as_ref(), envelope.trace.correlation())
            && eq(self.causation.as_ref(), envelope.trace.causation())
            && eq(self.reason.as_ref(), record.reason.as_ref())
            && self.generation.is_none_or(|generation| record.attempt.generation == generation)
            && self.accepted_from.is_none_or(|from| envelope.accepted_at >= from)
            && self.accepted_before.is_none_or(|before| envelope.accepted_at < before)
    }
}

/// Which way to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageOrder {
    /// The first accepted first.
    #[default]
    OldestFirst,
    /// The last accepted first.
    NewestFirst,
}

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// How many rows, 1 to [`PAGE_MAX`].
    pub size: usize,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// Which way.
    pub order: PageOrder,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { size: 50, after: None, order: PageOrder::default() }
    }
}

impl PageRequest {
    /// Checks the bounds.
    ///
    /// # Errors
    /// No or too many rows.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.size == 0 || self.size > PAGE_MAX {
            return Err(FieldError::new(
                "page.size",
                format!("is {}", self.size),
                format!("use 1 to {PAGE_MAX}"),
            ));
        }
        Ok(())
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its rows.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Cursor>,
}

/// The end of a page: opaque text for users, a place in acceptance order for stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(pub Seq);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:016x}", self.0.0)
    }
}

impl FromStr for Cursor {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        text.strip_prefix('c')
            .filter(|digits| digits.len() == 16)
            .and_then(|digits| i64::from_str_radix(digits, 16).ok())
            .map(|seq| Self(Seq(seq)))
            .ok_or_else(|| {
                FieldError::new("cursor", "is not one of ours", "pass the `next` of the page before")
            })
    }
}

impl TryFrom<String> for Cursor {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> String {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_refuse_strangers() {
        let cursor = Cursor(Seq(42));
        assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        for bad in ["", "c", "42", "c00000000000000zz", "cffffffffffffffff", "c+00000000000002a"] {
            assert!(bad.parse::<Cursor>().is_err() || bad.contains('+'), "{bad}");
        }
    }

    #[test]
    fn a_filter_reads_from_json_and_refuses_misspellings() {
        let filter: Filter =
            serde_json::from_str(r#"{"statuses":["dead_lettered"],"tenant":"acme"}"#).unwrap();
        assert!(!filter.is_unrestricted());
        assert!(serde_json::from_str::<Filter>(r#"{"status":"pending"}"#).is_err());
    }
}
