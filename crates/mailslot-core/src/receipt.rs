//! What an accept gives back.

use crate::contract::Contract;
use crate::id::MessageId;
use crate::name::{EndpointName, TenantName};
use crate::state::Status;
use crate::trace::Trace;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The proof that a message is durable. It says nothing about the result of handling it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The message's id.
    pub id: MessageId,
    /// Its contract.
    pub contract: Contract,
    /// Where it is handled.
    pub endpoint: EndpointName,
    /// When it was accepted, by the store's clock. For a duplicate: when the first one was.
    pub accepted_at: Timestamp,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// How it hangs together with others.
    #[serde(default)]
    pub trace: Trace,
    /// Whether this accept stored it.
    pub outcome: AcceptOutcome,
}

/// Whether an accept stored a message or found the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AcceptOutcome {
    /// This accept stored the message.
    Accepted,
    /// The supplied id or the key was known; the rest of the receipt is that of the first accept.
    AlreadyAccepted {
        /// Where the first message stands now.
        status: Status,
    },
}

impl Receipt {
    /// Whether this accept stored the message.
    pub fn is_new(&self) -> bool {
        self.outcome == AcceptOutcome::Accepted
    }
}
