//! Vocabulary, rules and traits of the Mailslot inbox.
//!
//! Nothing here runs, connects or prints: rules are pure functions (`state`, `outcome`, `retry`, `store::plan_append`),
//! time and chance are parameters (`clock`), and the memory store is the model that the other stores are compared
//! with. Read in this order: [`state`], `message`, [`store`], [`memory`]; who writes a store with tables goes on with
//! [`stored`] and [`moves`].

#![warn(missing_docs)]

pub mod arrival;
pub mod breaker;
pub mod broker;
pub mod capability;
pub mod clock;
mod codec;
mod contract;
mod delivered;
mod effect;
mod error;
mod field;
pub mod handler;
mod id;
pub mod limits;
pub mod memory;
mod message;
mod metadata;
pub mod moves;
mod name;
pub mod outcome;
mod receipt;
mod retry;
pub mod state;
pub mod store;
pub mod stored;
mod trace;

/// For implementing the traits of this crate.
pub use async_trait::async_trait;
pub use capability::Capabilities;
pub use clock::{Clock, ManualClock, Random, ScriptedRandom, SeededRandom, SystemClock};
pub use codec::{Codec, CodecError, ContentType, Json, Payload};
pub use contract::{Contract, ContractRegistry, DuplicateContract, Message};
pub use delivered::{DeliveryIdentity, DeliveryKey, Unrecognisable};
pub use effect::EffectId;
pub use error::{StoreError, StoreErrorKind};
pub use field::FieldError;
pub use handler::{
    Arrived, CancelCause, Cancellation, Context, Delivery, EnlistedTransaction, ErrorClass, Extensions,
    FromMessage, FromMessageParts, HandlerError, IntoVerdict, Raw, State, Verdict,
};
pub use id::{Attempt, MessageId, Seq};
pub use memory::MemoryStore;
pub use message::{EncodeError, Envelope, Fingerprint, LedgerKey, LedgerKeys, NewMessage};
pub use metadata::{Headers, Idempotency, Identity, KeyPolicy, Metadata, OnConflict, Priority, Visibility};
pub use name::{CausationId, CorrelationId, EndpointName, IdempotencyKey, SessionKey, TenantName};
pub use outcome::{Disposition, Effect, ErrorText, Handoff, OutcomeKind, OutcomeRecord, Reason, Settlement};
pub use receipt::{AcceptOutcome, Receipt};
pub use retry::Retry;
pub use state::{Status, state_machine_markdown};
pub use store::{AppendIn, InboxStore, LeaseToken, LedgerStore, OperatorStore, Owner, WakeMode, WorkSignal};
pub use trace::{Trace, TraceContext};
