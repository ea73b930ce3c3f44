//! Reading lines on a thread of its own, so that a slow source never holds up a receipt.

use crate::error::Error;
use crate::exit::Exit;
use mailslot::limits::PAYLOAD_BYTES_MAX;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use tokio::sync::mpsc;

/// Longest line: the largest payload with every byte escaped, and room for what stands beside it.
const LINE_BYTES_MAX: usize = 6 * PAYLOAD_BYTES_MAX + 256 * 1024;

/// Most bytes that are handed over together.
const CHUNK_BYTES: usize = 1024 * 1024;

/// A line and where it stood.
#[derive(Debug)]
pub(super) struct Line {
    /// Counted from 1 in its file.
    pub(super) number: u64,
    /// Which of the files, counted from 0.
    pub(super) file: usize,
    /// What it says, without its end; `None` if it is too long.
    pub(super) text: Option<Vec<u8>>,
}

type Chunk = Result<Vec<Line>, Error>;

/// Opens a file, or standard input for `-`.
pub(super) fn open(file: &str) -> Result<Box<dyn Read + Send>, Error> {
    if file == "-" {
        return Ok(Box::new(std::io::stdin()));
    }
    match File::open(file) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(Error::new(Exit::NotFound, format!("failed to open `{file}`: {error}"))),
    }
}

/// Reads the lines of files one after the other. At most two chunks are ahead of who takes them.
pub(super) fn lines(files: Vec<String>) -> mpsc::Receiver<Chunk> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for (index, file) in files.iter().enumerate() {
            // A receiver that is gone has seen enough.
            match read_file(file, index, &sender) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return drop(sender.blocking_send(Err(error))),
            }
        }
    });
    receiver
}

fn read_file(file: &str, index: usize, sender: &mpsc::Sender<Chunk>) -> Result<bool, Error> {
    let mut source = BufReader::with_capacity(256 * 1024, open(file)?);
    let failed = |error| Error::new(Exit::NotFound, format!("failed to read `{file}`: {error}"));
    let (mut chunk, mut bytes, mut number) = (Vec::new(), 0, 0);
    loop {
        let text = match read_line(&mut source).map_err(failed)? {
            Next::Text(text) => Some(text),
            Next::TooLong => None,
            Next::End => return Ok(chunk.is_empty() || sender.blocking_send(Ok(chunk)).is_ok()),
        };
        number += 1;
        bytes += text.as_ref().map_or(0, Vec::len);
        chunk.push(Line { number, file: index, text });
        // What is here goes on before a read that may wait.
        if bytes >= CHUNK_BYTES || source.buffer().is_empty() {
            bytes = 0;
            if sender.blocking_send(Ok(std::mem::take(&mut chunk))).is_err() {
                return Ok(false);
            }
        }
    }
}

/// What a source gives.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Text(Vec<u8>),
    TooLong,
    End,
}

fn read_line(source: &mut impl BufRead) -> std::io::Result<Next> {
    let mut line = Vec::new();
    let read = source.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(Next::End);
    }
    if read > LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        skip_line(source)?;
        return Ok(Next::TooLong);
    }
    Ok(Next::Text(line))
}

fn skip_line(source: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = source.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (length, is_end) = end.map_or((buffer.len(), buffer.is_empty()), |end| (end + 1, true));
        source.consume(length);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over_without_being_kept() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 5];
        text.extend(b"\nnext\nlast");
        let mut source = BufReader::new(&text[..]);
        assert_eq!(read_line(&mut source).unwrap(), Next::TooLong);
        assert_eq!(read_line(&mut source).unwrap(), Next::Text(b"next\n".to_vec()));
        assert_eq!(read_line(&mut source).unwrap(), Next::Text(b"last".to_vec()));
        assert_eq!(read_line(&mut source).unwrap(), Next::End);
    }
}
