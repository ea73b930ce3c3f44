//! `mailslot accept`.

mod draft;
mod line;
mod reader;
mod receipt;
mod stream;

use crate::args::{Global, instant, name_value, signed_duration};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;
use crate::store::{Missing, open};
use clap::ValueEnum;
use draft::Draft;
use jiff::{SignedDuration, Timestamp};
use mailslot::limits::PAYLOAD_BYTES_MAX;
use mailslot::{AnyStore, Inbox, NewMessage, Priority};
use std::io::Read as _;

/// Each file is one message, unless --ndjson: then each line is one.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// The payloads; `-` is standard input, and the default
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<String>,
    #[command(flatten)]
    message: MessageArgs,
    /// Read one message from each line: a JSON object with `payload` and, beside it, the names of these flags
    #[arg(long)]
    ndjson: bool,
    /// Store all messages together, or none of them
    #[arg(long)]
    batch: bool,
    /// Go on after a line that is refused, and end with 65
    #[arg(long, requires = "ndjson", conflicts_with = "batch")]
    keep_going: bool,
    /// Do not check that a JSON payload is JSON
    #[arg(long)]
    no_check: bool,
}

/// What travels beside a payload; with --ndjson, the defaults of every line.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The message")]
struct MessageArgs {
    /// What the payload is, as name@version
    #[arg(long, value_name = "NAME@VERSION")]
    contract: Option<String>,
    /// A repeated accept with this key returns the first receipt
    #[arg(long)]
    key: Option<String>,
    /// For how long the key deduplicates
    #[arg(long, value_name = "POLICY", default_value = "retained")]
    key_policy: KeyPolicy,
    /// What the same key with other content means
    #[arg(long, value_name = "ANSWER", default_value = "refuse")]
    on_conflict: OnConflict,
    /// Choose the id: a UUID
    #[arg(long)]
    id: Option<String>,
    /// Whose it is; keys and ids are scoped by it
    #[arg(long)]
    tenant: Option<String>,
    /// Messages of a session run one at a time, in acceptance order
    #[arg(long)]
    session: Option<String>,
    /// Where it is handled [default: default]
    #[arg(long)]
    endpoint: Option<String>,
    /// Not before this much time has passed, such as 10m
    #[arg(long, value_name = "TIME", value_parser = signed_duration, allow_hyphen_values = true)]
    due_in: Option<SignedDuration>,
    /// Not before this instant, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = instant, conflicts_with = "due_in")]
    due_at: Option<Timestamp>,
    /// Which messages go first when not all can
    #[arg(long)]
    priority: Option<PriorityArg>,
    /// The conversation it belongs to
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// What caused it
    #[arg(long, value_name = "ID")]
    causation: Option<String>,
    /// The W3C trace it belongs to
    #[arg(long)]
    traceparent: Option<String>,
    /// The W3C trace state
    #[arg(long, requires = "traceparent")]
    tracestate: Option<String>,
    /// A header; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = name_value)]
    headers: Vec<(String, String)>,
    /// The media type of the payload [default: application/json]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

/// See the library's `KeyPolicy`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum KeyPolicy {
    /// Until retention removes the message
    Retained,
    /// Until the message is completed, skipped or cancelled
    UntilFinished,
    /// Until the message is first leased
    UntilStarted,
}

/// See the library's `OnConflict`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OnConflict {
    /// An error
    Refuse,
    /// The first receipt
    ReturnFirst,
}

/// See the library's `Priority`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum PriorityArg {
    /// Before the others
    High,
    /// The default
    Normal,
    /// After the others, but not for ever
    Low,
}

impl From<PriorityArg> for Priority {
    fn from(priority: PriorityArg) -> Self {
        match priority {
            PriorityArg::High => Self::High,
            PriorityArg::Normal => Self::Normal,
            PriorityArg::Low => Self::Low,
        }
    }
}

/// Accepts what the arguments name.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let draft = Draft::from_flags(&args.message);
    if !args.ndjson {
        check_flags(&args)?;
    }
    let inbox = Inbox::builder(open(global, Missing::Create).await?).accept_any_contract().build()?;
    match (args.ndjson, args.batch) {
        (true, false) => stream::run(&inbox, &args, draft, global).await,
        (true, true) => stream::run_batch(&inbox, &args, draft, global).await,
        (false, true) => accept_together(&inbox, &args, draft, global).await,
        (false, false) => accept_files(&inbox, &args, draft, global).await,
    }
}

/// What would only fail after some of the files were stored.
fn check_flags(args: &Args) -> Result<(), Error> {
    let usage = |text: &str| Err(Error::new(Exit::Usage, text));
    if args.message.contract.is_none() {
        return usage("--contract is missing: say what the payload is, as name@version");
    }
    if args.files.len() > 1 && (args.message.key.is_some() || args.message.id.is_some()) {
        return usage("--key and --id name one message: accept the files one by one, or use --ndjson");
    }
    Ok(())
}

async fn accept_files(
    inbox: &Inbox<AnyStore>,
    args: &Args,
    draft: Draft,
    global: &Global,
) -> Result<(), Error> {
    let mut printer = receipt::Printer::new(Output::new(global));
    for file in &args.files {
        let message = prepare(inbox, args, &draft, file)?;
        let accepted = inbox.accept_batch(vec![message]).await;
        let receipts = accepted.map_err(|batch| at_file(args, file, batch.error.into()))?;
        receipts.iter().try_for_each(|receipt| printer.print(None, receipt))?;
    }
    Ok(())
}

async fn accept_together(
    inbox: &Inbox<AnyStore>,
    args: &Args,
    draft: Draft,
    global: &Global,
) -> Result<(), Error> {
    let messages = args.files.iter().map(|file| prepare(inbox, args, &draft, file));
    let messages = messages.collect::<Result<Vec<_>, _>>().map_err(|error| error.but(NOTHING_STORED))?;
    let receipts = inbox.accept_batch(messages).await.map_err(|batch| {
        let file = args.files.get(batch.index).map_or("the batch", String::as_str);
        Error::from(batch.error).context(file).but(NOTHING_STORED)
    })?;
    let mut printer = receipt::Printer::new(Output::new(global));
    receipts.iter().try_for_each(|receipt| printer.print(None, receipt))
}

/// What a batch that was refused ends with.
const NOTHING_STORED: &str = "no message was stored";

fn prepare(inbox: &Inbox<AnyStore>, args: &Args, draft: &Draft, file: &str) -> Result<NewMessage, Error> {
    let payload = read_payload(file)?;
    // Its size first: what was cut off while reading is no JSON.
    let message = draft.prepare(inbox, payload.clone()).map_err(|error| at_file(args, file, error.into()))?;
    draft.check_payload(&payload, args.no_check).map_err(|error| at_file(args, file, error))?;
    Ok(message)
}

fn at_file(args: &Args, file: &str, error: Error) -> Error {
    if args.files.len() > 1 { error.context(file) } else { error }
}

/// Reads a payload, but not much more than fits.
fn read_payload(file: &str) -> Result<Vec<u8>, Error> {
    let mut payload = Vec::new();
    let limit = PAYLOAD_BYTES_MAX as u64 + 1;
    let read = reader::open(file)?.take(limit).read_to_end(&mut payload);
    read.map_err(|error| Error::new(Exit::NotFound, format!("failed to read `{file}`: {error}")))?;
    Ok(payload)
}
