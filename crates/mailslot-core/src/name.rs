//! The validated names of the system: endpoint, tenant, session, key, correlation and causation.

use crate::field::FieldError;
use crate::limits::{ENDPOINT_UNITS_MAX, NAME_UNITS_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Refuses what would silently disable a protection (blank) or break a column, a log or a header (long, control).
pub(crate) fn check_text(field: &'static str, text: &str, units_max: usize) -> Result<(), FieldError> {
    if text.trim().is_empty() {
        return Err(FieldError::new(field, "is blank", "give a visible value or leave the field out"));
    }
    let units = text.encode_utf16().count();
    if units > units_max {
        let problem = format!("has {units} UTF-16 units");
        return Err(FieldError::new(field, problem, format!("shorten it to {units_max} or fewer")));
    }
    if text.chars().any(char::is_control) {
        return Err(FieldError::new(
            field,
            "has a control character",
            "remove it (NUL, tab and line break count)",
        ));
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal, $units_max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` and keeps it byte for byte: no trimming, no case folding, no normalisation.
            ///
            /// # Errors
            /// Blank, too long, or with a control character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
                check_text($field, text.as_ref(), $units_max)?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = FieldError;
            fn try_from(text: String) -> Result<Self, FieldError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl std::str::FromStr for $name {
            type Err = FieldError;
            fn from_str(text: &str) -> Result<Self, FieldError> {
                Self::new(text)
            }
        }
    };
}

name!(
    /// A named place where messages are handled. Every message belongs to exactly one.
    EndpointName, "endpoint", ENDPOINT_UNITS_MAX
);
name!(
    /// The customer or partition that a message belongs to. Keys and supplied ids are scoped by it.
    TenantName, "tenant", NAME_UNITS_MAX
);
name!(
    /// The ordering key: messages of one session run one at a time, in acceptance order.
    SessionKey, "session", NAME_UNITS_MAX
);
name!(
    /// What makes a repeated accept recognisable.
    IdempotencyKey, "idempotency_key", NAME_UNITS_MAX
);
name!(
    /// Ties together the messages of one business conversation.
    CorrelationId, "correlation", NAME_UNITS_MAX
);
name!(
    /// The message or request that caused this one.
    CausationId, "causation", NAME_UNITS_MAX
);

impl EndpointName {
    /// The endpoint of messages that name none.
    pub const DEFAULT: &'static str = "default";
}

impl Default for EndpointName {
    fn default() -> Self {
        Self(Arc::from(Self::DEFAULT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, problem: Option<&str>) {
        let found = TenantName::new(text).map_err(|e| e.problem().to_owned()).err();
        assert_eq!(found.as_deref(), problem, "{text:?}");
    }

    #[test]
    fn names_keep_every_byte_and_refuse_what_hides() {
        check("acme", None);
        check(" Acme ", None);
        check("", Some("is blank"));
        check(" \u{2003}", Some("is blank"));
        check("a\0b", Some("has a control character"));
        check("a\nb", Some("has a control character"));
        assert_ne!(TenantName::new("a").unwrap(), TenantName::new("a ").unwrap());
        assert_ne!(TenantName::new("e\u{301}").unwrap(), TenantName::new("\u{e9}").unwrap());
    }

    #[test]
    fn length_counts_utf16_units() {
        check(&"\u{1f600}".repeat(256), None);
        check(&"\u{1f600}".repeat(257), Some("has 514 UTF-16 units"));
        assert!(EndpointName::new("e".repeat(260)).is_ok());
        assert!(EndpointName::new("e".repeat(261)).is_err());
    }
}
