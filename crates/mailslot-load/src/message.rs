//! The message of every load: 256 bytes of JSON.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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
#[message(name = "bench.work", version = 1, crate = mailslot_core)]
pub struct Work {
    /// By [`now_ns`].
    pub sent_ns: u64,
    filler: Cow<'static, str>,
}

impl Work {
    /// A message sent now.
    pub fn now() -> Self {
        let sent_ns = now_ns();
        let digits = sent_ns.max(1).ilog10() as usize + 1;
        Self { sent_ns, filler: Cow::Borrowed(&FILLER[..PAYLOAD_BYTES - FRAME_BYTES - digits]) }
    }

    /// Its JSON, as the inbox encodes it.
    ///
    /// # Panics
    /// Never: a number and a text always have a JSON form.
    pub fn payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a number and a text always have a JSON form")
    }

    /// When the message with this payload was sent. It reads no more than it must: the references, which have no typed
    /// handlers, are not to pay for a decoding that only the measurement needs.
    pub fn sent_ns_of(payload: &[u8]) -> Option<u64> {
        let text = payload.strip_prefix(b"{\"sent_ns\":")?;
        let digits = text.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
    }
}

/// Nanoseconds of a clock that never goes back and that all processes of this machine share.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or_default() * 1_000_000_000 + nanos.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_has_its_size_whatever_the_time() {
        for _ in 0..3 {
            assert_eq!(Work::now().payload().len(), PAYLOAD_BYTES);
        }
        let work = Work::now();
        assert_eq!(Work::sent_ns_of(&work.payload()), Some(work.sent_ns));
        assert_eq!(Work::sent_ns_of(b"{\"other\":1}"), None);
    }
}
