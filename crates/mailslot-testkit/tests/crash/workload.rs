//! The requests of a round, and what the handlers of their messages do.

use mailslot_core::{Json, Message};
use serde::{Deserialize, Serialize};

/// How many sessions messages are spread over.
const SESSIONS: u32 = 4;

/// A message of the crash test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Step {
    /// The request that it came by.
    pub(crate) request: String,
    /// Which try of the request it came by; 0 if the request has a key, which makes all tries one.
    pub(crate) nonce: i64,
    /// Its place in the request.
    pub(crate) place: u32,
    /// How many messages the request has.
    pub(crate) of: u32,
    pub(crate) kind: Kind,
}

impl Step {
    /// A name that only this message has.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.request, self.nonce, self.place)
    }
}

impl Message for Step {
    const NAME: &'static str = "crash.step";
    const VERSION: u32 = 1;
    type Codec = Json;
}

/// The same message under a contract of its own, so that only its handler takes a transaction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InTransaction(pub(crate) Step);

impl Message for InTransaction {
    const NAME: &'static str = "crash.step-in-transaction";
    const VERSION: u32 = 1;
    type Codec = Json;
}

/// What a transactional handler accepts in its transaction: the name of its message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FollowUp(pub(crate) String);

impl Message for FollowUp {
    const NAME: &'static str = "crash.follow-up";
    const VERSION: u32 = 1;
    type Codec = Json;
}

/// What a handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Writes an effect outside of the database, then succeeds.
    Plain,
    /// Writes an effect and accepts a follow-up in its own transaction, which commits with its completion.
    Transactional,
    /// Fails on its first attempt.
    Flaky,
    /// As `Plain`, after longer than a heartbeat's interval.
    Slow,
    /// Fails for good.
    Refused,
    /// Kills its process, always.
    Deadly,
}

/// How a request accepts its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// One message.
    Alone,
    /// Several, all or none.
    Batch,
    /// One, in a transaction of the caller's with a row of the caller's.
    InTransaction,
}

/// What a producer asks for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) how: How,
    pub(crate) has_key: bool,
    /// The kind and the session of each message.
    pub(crate) messages: Vec<(Kind, Option<String>)>,
}

/// The requests of one producer. Two out of three have a key, by which a repeated one is the same.
pub(crate) fn script(producer: &str, requests: u32) -> impl Iterator<Item = Request> {
    let producer = producer.to_owned();
    (0..requests).map(move |index| {
        let how = match index % 10 {
            3 | 8 => How::InTransaction,
            6 => How::Batch,
            _ => How::Alone,
        };
        let messages = if how == How::Batch { 2 + index % 4 } else { 1 };
        let message = |place| (kind(index + place), session(index + place));
        Request {
            name: format!("{producer}-{index}"),
            how,
            has_key: index % 3 != 0,
            messages: (0..messages).map(message).collect(),
        }
    })
}

fn kind(index: u32) -> Kind {
    match index % 20 {
        0..=2 | 10..=13 => Kind::Plain,
        4..=6 | 14..=17 => Kind::Transactional,
        7 | 8 => Kind::Flaky,
        3 => Kind::Slow,
        _ => Kind::Refused,
    }
}

/// Two in five are ordered. Those that end as dead letters are not: they would hold their session back for ever.
fn session(index: u32) -> Option<String> {
    (index % 5 < 2 && kind(index) != Kind::Refused).then(|| format!("session-{}", index % SESSIONS))
}
