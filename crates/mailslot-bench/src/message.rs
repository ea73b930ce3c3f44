//! The message of every case: 256 bytes of JSON.

use mailslot::Message;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Instant;

/// Bytes of the payload.
const PAYLOAD_BYTES: usize = 256;

/// What the JSON needs beside filler and digits: `{"sent_ns":,"filler":""}`.
const FRAME_BYTES: usize = 24;

const FILLER: &str = match std::str::from_utf8(&[b'x'; PAYLOAD_BYTES]) {
    Ok(filler) => filler,
    Err(_) => "",
};

/// A message that knows when its accept was called.
#[derive(Debug, Clone, Serialize, Deserialize, Message)]
#[message(name = "bench.work", version = 1)]
pub(crate) struct Work {
    /// By [`now_ns`].
    pub(crate) sent_ns: u64,
    filler: Cow<'static, str>,
}

impl Work {
    /// A message sent now.
    pub(crate) fn new() -> Self {
        let sent_ns = now_ns();
        let digits = sent_ns.max(1).ilog10() as usize + 1;
        Self { sent_ns, filler: Cow::Borrowed(&FILLER[..PAYLOAD_BYTES - FRAME_BYTES - digits]) }
    }

    /// Its JSON, as the inbox encodes it.
    pub(crate) fn payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a number and a text always have a JSON form")
    }

    /// When the message with this payload was sent.
    pub(crate) fn sent_ns_of(payload: &[u8]) -> Option<u64> {
        serde_json::from_slice::<Self>(payload).ok().map(|work| work.sent_ns)
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds since the first call in this process.
pub(crate) fn now_ns() -> u64 {
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_has_its_size_whatever_the_time() {
        for _ in 0..3 {
            assert_eq!(Work::new().payload().len(), PAYLOAD_BYTES);
        }
        let work = Work::new();
        assert_eq!(Work::sent_ns_of(&work.payload()), Some(work.sent_ns));
    }
}
