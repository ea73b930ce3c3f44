//! Errors as a shell sees them: one line that names the argument and the fix, and an exit code.

use crate::args::Global;
use crate::exit::Exit;
use crate::output;
use mailslot::{
    AcceptError, BuildError, ControlError, FieldError, OpenError, OperateError, RunError, StoreError,
    StoreErrorKind,
};
use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io::Write as _;

type Source = Box<dyn StdError + Send + Sync>;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) struct Error {
    exit: Exit,
    text: String,
    source: Option<Source>,
    /// Nobody reads what we print: there is nothing to report, and nobody to report it to.
    silent: bool,
}

impl Error {
    /// An error with its exit code.
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into(), source: None, silent: false }
    }

    /// Something that no table foresees.
    pub(crate) fn unforeseen(what: &str, source: impl Into<Source>) -> Self {
        let source = source.into();
        let text = format!("{what}: {source}");
        Self { source: Some(source), ..Self::new(Exit::Failed, text) }
    }

    /// Standard output cannot be written.
    pub(crate) fn of_output(error: std::io::Error) -> Self {
        let silent = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::unforeseen("failed to write to standard output", error) }
    }

    /// A value that was refused, called by `name` instead of its name in the library.
    pub(crate) fn of_field(name: &str, error: &FieldError) -> Self {
        Self::new(Exit::BadInput, format!("{name} {}: {}", error.problem(), error.fix()))
    }

    /// Puts the place or the deed in front of the text.
    pub(crate) fn context(mut self, what: impl std::fmt::Display) -> Self {
        self.text = format!("{what}: {}", self.text);
        self
    }

    /// Adds what came of it to the end of the text.
    pub(crate) fn but(mut self, what: impl std::fmt::Display) -> Self {
        let _ = write!(self.text, "; {what}");
        self
    }

    /// The code to end with.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The line without its prefix.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Prints the line, and with `-v` the causes.
    pub(crate) fn report(&self, global: &Global) {
        if self.silent {
            return;
        }
        let mut out = format!("{} {}\n", output::error_label(), one_line(&self.text));
        let mut cause = self.source.as_deref().map(|source| source as &dyn StdError);
        while let Some(error) = cause.filter(|_| global.verbose > 0) {
            let _ = writeln!(out, "  caused by: {}", one_line(&error.to_string()));
            cause = error.source();
        }
        // There is nowhere left to report that the report cannot be written.
        let _ = std::io::stderr().write_all(out.as_bytes());
    }
}

fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// What the library calls a field, as a flag. Names that are no field of ours stay as they are.
pub(crate) fn flag_of(field: &str) -> String {
    let flag = match field {
        "idempotency_key" => "--key",
        "headers" => "--header",
        "due" => "--due-in or --due-at",
        "retry.max_attempts" => "--max-attempts",
        "retry.max_delay" => "--retry",
        "redrive.rate" => "--rate",
        "page.size" => "--limit",
        "cursor" => "--after",
        "handoff.reason" => "--error",
        "id" => "the message id",
        "redrive" => "the number of the redrive",
        "store" | "url" => "--store",
        "payload" | "filter" => return format!("the {field}"),
        "tenant" | "session" | "endpoint" | "contract" | "correlation" | "causation" | "traceparent"
        | "tracestate" | "content_type" | "due_in" | "due_at" | "priority" | "concurrency" | "batch"
        | "lease" | "heartbeat" | "poll" | "time_limit" | "grace" | "status" | "reason" => {
            return format!("--{}", field.replace('_', "-"));
        }
        other => return format!("`{other}`"),
    };
    flag.to_owned()
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        Self::of_field(&flag_of(error.field()), &error)
    }
}

impl From<&StoreError> for Error {
    fn from(error: &StoreError) -> Self {
        let exit = match error.kind() {
            StoreErrorKind::Unavailable | StoreErrorKind::NotWritable => Exit::Unavailable,
            StoreErrorKind::Busy => Exit::TryAgain,
            StoreErrorKind::Schema => Exit::Schema,
            StoreErrorKind::Invalid => Exit::BadInput,
            _ => Exit::Failed,
        };
        Self::new(exit, format!("the store failed to {error}"))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self { source: Some(Box::new(Cause::of(&error))), ..Self::from(&error) }
    }
}

/// The causes of a store's error, kept as text: what it shares cannot be taken out of it.
#[derive(Debug)]
struct Cause(String);

impl Cause {
    fn of(error: &StoreError) -> Self {
        let mut texts = Vec::new();
        let mut cause = StdError::source(error);
        while let Some(error) = cause {
            texts.push(error.to_string());
            cause = error.source();
        }
        if texts.is_empty() {
            texts.push(format!("{:?}", error.kind()));
        }
        Self(texts.join(": "))
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Cause {}

impl From<OperateError> for Error {
    fn from(error: OperateError) -> Self {
        match error {
            OperateError::Field(error) => error.into(),
            OperateError::Store(error) => error.into(),
            other => Self::unforeseen("the request failed", other),
        }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Url(error) => error.into(),
            OpenError::Store(error) => error.into(),
            other => Self::unforeseen("failed to open the store", other),
        }
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Field(error) => error.into(),
            other => Self::new(Exit::BadInput, other.to_string()),
        }
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Self::unforeseen("failed to work", error)
    }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Store(error) => error.into(),
            other => Self::unforeseen("failed to drain", other),
        }
    }
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        let text = format!("{error:#}");
        Self { source: Some(error.into()), ..Self::new(Exit::Failed, text) }
    }
}

impl From<AcceptError> for Error {
    fn from(error: AcceptError) -> Self {
        Self::of_accept(error, flag_of)
    }
}

impl Error {
    /// An accept that was refused; `name_of` says what the user calls a field.
    pub(crate) fn of_accept(error: AcceptError, name_of: fn(&str) -> String) -> Self {
        match error {
            AcceptError::Field(error) => Self::of_field(&name_of(error.field()), &error),
            AcceptError::Conflict { first, field } => {
                let name = name_of(field);
                let text = format!(
                    "{name} was used before with other content, by message {first}: use another one{}",
                    if field == "id" { "" } else { ", or add --on-conflict return-first" }
                );
                Self::new(Exit::Conflict, text)
            }
            AcceptError::SessionFull => Self::new(
                Exit::TryAgain,
                format!(
                    "{} has too many messages waiting: see `mailslot sessions --blocked`, or use more sessions",
                    name_of("session")
                ),
            ),
            AcceptError::Overloaded { .. } => Self::new(Exit::TryAgain, error.to_string()),
            AcceptError::Store(error) => {
                Self { source: Some(Box::new(Cause::of(&error))), ..Self::from(&*error) }
            }
            other => Self::new(Exit::BadInput, other.to_string()),
        }
    }
}
