//! The messages of a round, and what their handlers do.

use mailslot_core::{Json, Message};
use serde::{Deserialize, Serialize};

/// How many messages one round accepts.
pub(crate) const MESSAGES: u32 = 120;

/// How many sessions they are spread over.
const SESSIONS: u32 = 4;

/// A message of the crash test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) index: u32,
    pub(crate) kind: Kind,
}

impl Message for Step {
    const NAME: &'static str = "crash.step";
    const VERSION: u32 = 1;
    type Codec = Json;
}

/// What its handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Writes an effect outside of the database, then succeeds.
    Plain,
    /// Writes an effect in its own transaction, which commits with its completion.
    Transactional,
    /// Fails on its first attempts.
    Flaky,
    /// Fails for good.
    Refused,
    /// Kills its process, always.
    Deadly,
}

impl Step {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..MESSAGES).map(|index| {
            let kind = match index % 10 {
                0..=3 => Kind::Plain,
                4..=6 => Kind::Transactional,
                7 | 8 => Kind::Flaky,
                _ => Kind::Refused,
            };
            Self { index, kind }
        })
    }

    pub(crate) fn key(&self) -> String {
        format!("step:{}", self.index)
    }

    /// Two in five are ordered. Those that end as dead letters are not: they would hold their session back for ever.
    pub(crate) fn session(&self) -> Option<String> {
        (self.index % 5 < 2 && self.kind != Kind::Refused)
            .then(|| format!("session-{}", self.index % SESSIONS))
    }
}
