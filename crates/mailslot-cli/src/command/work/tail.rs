//! Reading what a child writes without keeping more than the end of it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt as _};

const BUFFER: usize = 16 * 1024;

/// The last bytes of a stream.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Mutex<VecDeque<u8>>,
    max: usize,
}

impl Tail {
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: Mutex::new(VecDeque::with_capacity(max)), max }
    }

    fn push(&self, new: &[u8]) {
        let new = &new[new.len().saturating_sub(self.max)..];
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let over = (bytes.len() + new.len()).saturating_sub(self.max);
        bytes.drain(..over);
        bytes.extend(new);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Reads to the end and keeps the last bytes.
pub(super) async fn keep_end(stream: Option<impl AsyncRead + Unpin>, tail: &Tail) {
    read(stream, |bytes| tail.push(bytes)).await;
}

/// Reads to the end and keeps nothing.
pub(super) async fn discard(stream: Option<impl AsyncRead + Unpin>) {
    read(stream, |_| ()).await;
}

async fn read(stream: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; BUFFER];
    // A pipe that breaks has nothing more to say.
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        take(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let tail = Tail::new(4);
        for part in ["", "ab", "c", "def", "0123456789"] {
            tail.push(part.as_bytes());
            assert!(tail.bytes().len() <= 4);
        }
        tail.push(b"x");
        assert_eq!(tail.bytes(), b"789x");
    }
}
