//! What a handler is given and what it gives back: extractors and verdicts. The engine runs handlers; stores and users
//! add extractors here without depending on it.

mod context;
mod extract;
mod verdict;

pub use context::{Arrived, CancelCause, Cancellation, Context, Delivery, EnlistedTransaction, Extensions};
pub use extract::{FromMessage, FromMessageParts, Raw, State};
pub use verdict::{BoxError, ErrorClass, HandlerError, IntoVerdict, Verdict, VerdictKind, decide};
