//! The engine of Mailslot: it accepts messages, runs handlers under leases, settles, and keeps house.
//!
//! Entry points: [`Inbox::builder`] makes an [`Inbox`]; [`Inbox::accept`] stores a message; [`Inbox::run`] works until
//! told to stop; [`Inbox::operator`] is for people. The engine sees stores through `mailslot-core`'s traits only.

#![warn(missing_docs)]

mod accept;
mod builder;
mod circuit;
mod coalesce;
mod config;
mod dedup;
mod dispatch;
mod follow;
mod handler;
mod hook;
mod inbox;
mod maintenance;
mod operator;
mod outage;
mod outbox;
mod route;
mod stats;
mod store;
mod subscriber;
mod worker;

pub use accept::{Accept, AcceptError, BackPressure, BatchError};
pub use builder::{BuildError, InboxBuilder};
pub use circuit::CircuitBreaker;
pub use config::{MaintenanceConfig, WorkerConfig};
pub use dedup::{Cleanup, Dedup, DedupCounts, DedupError, DedupService};
pub use follow::{
    EventKind, Lifecycle, Observer, OutcomeEvent, OutcomeSink, PublishingSink, Subject, TracingSink,
};
pub use handler::{BoxedHandler, Handler, HandlerOptions};
pub use hook::{Hook, HookFailurePolicy};
pub use inbox::{Inbox, RunError};
pub use operator::{Changes, HandoffSettled, OperateError, Operator};
pub use outbox::{Dispatcher, publish_from_context};
pub use stats::Stats;
pub use store::{AnyStore, Store};
pub use subscriber::{
    DUE_HEADER, DUE_IN_HEADER, Deduplication, HEARTBEAT_CONTRACT, IdentifyBy, PRIORITY_HEADER,
    REJECTED_CONTRACT, Safety, SubscribeError, Subscriber, SubscriberBuilder, SubscriberCounts,
    SubscriberState, TENANT_HEADER,
};
pub use worker::{ControlError, WorkerControl, WorkerState};
