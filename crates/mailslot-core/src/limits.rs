//! Every bound of the system, each with its reason.
//!
//! Passing a bound is a [`FieldError`](crate::FieldError) at the edge, never a truncation of what a user stored.

use std::time::Duration;

/// Longest idempotency key, tenant, session key, correlation or causation id, in UTF-16 units.
///
/// UTF-16 units because the systems whose ids arrive here count that way.
pub const NAME_UNITS_MAX: usize = 512;

/// Longest endpoint or contract name, in UTF-16 units: the longest entity path that the brokers allow.
pub const ENDPOINT_UNITS_MAX: usize = 260;

/// Largest payload in bytes: what a broker's large message carries, with room to spare.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest content type in bytes (RFC 6838 allows 127 for each of the two names).
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// Most headers on one message.
pub const HEADERS_MAX: usize = 64;

/// Most bytes of all header names and values of one message.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Most bytes of `tracestate` that are kept (W3C Trace Context asks for at least 512).
pub const TRACESTATE_BYTES_MAX: usize = 512;

/// Longest error text that is stored with an attempt, in bytes; longer text is cut and marked.
pub const ERROR_BYTES_MAX: usize = 4096;

/// Most messages in one append: bounds the time for which one accept holds the store's write lock.
pub const APPEND_BATCH_MAX: usize = 10_000;

/// Most messages in one lease batch.
pub const LEASE_BATCH_MAX: usize = 1_000;

/// Most settlements in one exchange.
pub const SETTLE_BATCH_MAX: usize = 1_000;

/// Largest page of a query.
pub const PAGE_MAX: usize = 1_000;

/// Most messages that one operator call or one maintenance step changes: keeps each transaction short.
pub const CHANGE_BATCH_MAX: usize = 1_000;

/// Most messages that may wait behind one session's head.
pub const PARKED_PER_SESSION_MAX: u64 = 100_000;

/// Farthest due time, counted from the accept: ten years. Later is taken for a wrong unit.
pub const DUE_IN_MAX: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Shortest lease: shorter ones are lost to ordinary scheduling delays.
pub const LEASE_MIN: Duration = Duration::from_millis(100);

/// Longest lease: the longest time for which a killed worker's messages may stay untouched.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Most attempts that a retry policy may ask for.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// After how many leases in a row that ran out a message is suspected of killing its workers: an owner then holds only
/// one such message at a time, so that the guilty one uses up its own attempts and not those of its neighbours. One is
/// what every killed process leaves behind, so it says nothing yet.
pub const SUSPECT_AFTER: usize = 2;

/// By how much a class of priority is set back against the next higher one: an overloaded inbox delays a low
/// message by at most two such steps against a high one, so nothing starves.
pub const PRIORITY_STEP: Duration = Duration::from_secs(30);

/// Most settlements of handoffs that are kept because they came too early: each waits for one message, and a system that settles
/// what nobody handed to it must not fill the store.
pub const HANDOFFS_KEPT_MAX: usize = 100_000;
