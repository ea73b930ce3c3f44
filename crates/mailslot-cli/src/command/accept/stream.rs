//! NDJSON: many accepts in flight, so that the engine stores them together, and receipts in the order of the lines.

use super::Args;
use super::draft::Draft;
use super::line::{field_of, read};
use super::reader::{Line, lines};
use super::receipt::Printer;
use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, counted};
use crate::progress;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use indicatif::ProgressBar;
use mailslot::{AnyStore, FieldError, Inbox, NewMessage, Receipt};
use std::collections::VecDeque;
use std::pin::Pin;

/// Most accepts in flight: twice what the engine stores together, so that it never waits for lines.
const IN_FLIGHT: usize = 1_024;

/// Most payload bytes in flight.
const IN_FLIGHT_BYTES: usize = 16 * 1024 * 1024;

/// What became of a line: its number, the bytes of its payload, and the receipt or why there is none.
type Answer = (u64, usize, Result<Receipt, Error>);
type Pending<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Accepts line by line.
pub(super) async fn run(
    inbox: &Inbox<AnyStore>,
    args: &Args,
    draft: Draft,
    global: &Global,
) -> Result<(), Error> {
    let mut chunks = lines(args.files.clone());
    let mut report = Report::new(args, global);
    let mut waiting: VecDeque<Line> = VecDeque::new();
    let mut in_flight = FuturesOrdered::<Pending<'_>>::new();
    let mut bytes = 0;
    let mut reading = true;
    loop {
        while reading && in_flight.len() < IN_FLIGHT && bytes < IN_FLIGHT_BYTES {
            let Some(line) = waiting.pop_front() else { break };
            let number = line.number;
            match prepare(inbox, &line, &draft) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    bytes += message.payload.bytes().len();
                    in_flight.push_back(accept(inbox, number, place_of(&line, args), message));
                }
                Err(error) => {
                    // Its error is reported after the receipts of the lines before it.
                    reading = args.keep_going;
                    let error = error.context(place_of(&line, args));
                    in_flight.push_back(Box::pin(std::future::ready((number, 0, Err(error)))));
                }
            }
        }
        tokio::select! {
            biased;
            Some((line, length, answer)) = in_flight.next(), if !in_flight.is_empty() => {
                bytes -= length;
                reading &= report.take(line, answer)?;
            }
            chunk = chunks.recv(), if reading && waiting.is_empty() => match chunk {
                Some(chunk) => waiting.extend(chunk.map_err(|error| report.stopped(error))?),
                None => reading = false,
            },
            else => return report.finish(),
        }
    }
}

fn accept(inbox: &Inbox<AnyStore>, number: u64, place: String, message: NewMessage) -> Pending<'_> {
    let length = message.payload.bytes().len();
    Box::pin(async move {
        let answer = match inbox.accept_batch(vec![message]).await {
            Ok(receipts) => Ok(receipts.into_iter().next().expect("one message gives one receipt")),
            Err(batch) => Err(Error::of_accept(batch.error, field_of).context(place)),
        };
        (number, length, answer)
    })
}

fn trimmed(text: &[u8], number: u64) -> &[u8] {
    // Some editors of Windows begin a file with a byte order mark.
    let text = if number == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
    text.trim_ascii()
}

fn place_of(line: &Line, args: &Args) -> String {
    match args.files.get(line.file) {
        Some(file) if args.files.len() > 1 => format!("{file}, line {}", line.number),
        _ => format!("line {}", line.number),
    }
}

/// The message of a line, checked. A blank line has none.
fn prepare(inbox: &Inbox<AnyStore>, line: &Line, defaults: &Draft) -> Result<Option<NewMessage>, Error> {
    let refused = |error: FieldError| Error::of_field(&field_of(error.field()), &error);
    let too_long =
        || FieldError::new("line", "is too long", "store large content elsewhere and send its address");
    let text = line.text.as_deref().ok_or_else(too_long).map_err(refused)?;
    let text = trimmed(text, line.number);
    if text.is_empty() {
        return Ok(None);
    }
    let (draft, payload) = read(text, defaults).map_err(refused)?;
    let prepared = draft.prepare(inbox, payload);
    prepared.map(Some).map_err(|error| Error::of_accept(error, field_of))
}

/// What became of the lines so far.
struct Report {
    printer: Printer,
    bar: ProgressBar,
    output: Output,
    keep_going: bool,
    accepted: u64,
    known: u64,
    refused: u64,
    first_error: Option<Error>,
}

impl Report {
    fn new(args: &Args, global: &Global) -> Self {
        let output = Output::new(global);
        Self {
            printer: Printer::new(output),
            bar: progress::bar(global, None, "messages"),
            output,
            keep_going: args.keep_going,
            accepted: 0,
            known: 0,
            refused: 0,
            first_error: None,
        }
    }

    /// Prints an answer; says whether to read on.
    fn take(&mut self, line: u64, answer: Result<Receipt, Error>) -> Result<bool, Error> {
        self.bar.inc(1);
        let error = match answer {
            Ok(receipt) => {
                let count = if receipt.is_new() { &mut self.accepted } else { &mut self.known };
                *count += 1;
                self.printer.print(Some(line), &receipt)?;
                return Ok(true);
            }
            Err(error) => error,
        };
        self.refused += 1;
        // A store that fails would fail for every line to come.
        let goes_on =
            self.keep_going && matches!(error.exit(), Exit::BadInput | Exit::Conflict | Exit::NotFound);
        if goes_on {
            self.printer.refuse(line, &error)?;
        } else {
            self.first_error.get_or_insert(error);
        }
        Ok(goes_on)
    }

    fn counts(&self) -> String {
        format!("{} accepted, {} already accepted before", counted(self.accepted, "message"), self.known)
    }

    fn stopped(&self, error: Error) -> Error {
        let again = "running it again is safe for messages with a key or an id";
        error.but(format!("{}; {again}", self.counts()))
    }

    fn finish(mut self) -> Result<(), Error> {
        self.bar.finish_and_clear();
        if let Some(error) = self.first_error.take() {
            return Err(self.stopped(error));
        }
        if self.refused > 0 {
            let refused = counted(self.refused, "line");
            return Err(Error::new(Exit::BadInput, format!("{refused} refused; {}", self.counts())));
        }
        self.output.note(self.counts());
        Ok(())
    }
}

/// Accepts all lines together.
pub(super) async fn run_batch(
    inbox: &Inbox<AnyStore>,
    args: &Args,
    draft: Draft,
    global: &Global,
) -> Result<(), Error> {
    let mut chunks = lines(args.files.clone());
    let (mut places, mut messages) = (Vec::new(), Vec::new());
    while let Some(chunk) = chunks.recv().await {
        for line in chunk? {
            let place = place_of(&line, args);
            let number = line.number;
            if let Some(message) = prepare(inbox, &line, &draft).map_err(|error| unstored(error, &place))? {
                messages.push(message);
                places.push((number, place));
            }
        }
        check_size(messages.len())?;
    }
    let receipts = inbox.accept_batch(messages).await.map_err(|batch| {
        let place = places.get(batch.index).map_or("the batch", |(_, place)| place);
        unstored(Error::of_accept(batch.error, field_of), place)
    })?;
    let mut printer = Printer::new(Output::new(global));
    places.iter().zip(&receipts).try_for_each(|((line, _), receipt)| printer.print(Some(*line), receipt))
}

/// Refuses a batch that is too large before all of it is read.
fn check_size(messages: usize) -> Result<(), Error> {
    let max = mailslot::limits::APPEND_BATCH_MAX;
    if messages <= max {
        return Ok(());
    }
    let fix = format!("split it into batches of at most {max}, or leave --batch out");
    Err(Error::new(Exit::BadInput, format!("the batch has more than {max} messages: {fix}")))
}

fn unstored(error: Error, place: &str) -> Error {
    error.context(place).but(super::NOTHING_STORED)
}
