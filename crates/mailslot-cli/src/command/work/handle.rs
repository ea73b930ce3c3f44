//! Handling one message by running a command.

use super::child::{self, End, Ended};
use super::route::Route;
use mailslot::limits::ERROR_BYTES_MAX;
use mailslot::{
    CancelCause, CausationId, Context, CorrelationId, Envelope, HandlerError, IdempotencyKey, Raw, Reason,
    SessionKey, TenantName, TraceContext,
};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;

/// The exit code with which a command dead-letters its message: `EX_DATAERR` of `sysexits.h`.
const DEAD_LETTER: i32 = 65;

/// Every variable that tells a command about its message. What a message does not have is unset, so that nothing
/// is inherited in its place.
const VARIABLES: [&str; 18] = [
    "MAILSLOT_ID",
    "MAILSLOT_CONTRACT",
    "MAILSLOT_CONTRACT_VERSION",
    "MAILSLOT_ENDPOINT",
    "MAILSLOT_TENANT",
    "MAILSLOT_SESSION",
    "MAILSLOT_KEY",
    "MAILSLOT_ATTEMPT",
    "MAILSLOT_GENERATION",
    "MAILSLOT_FENCE",
    "MAILSLOT_ACCEPTED_AT",
    "MAILSLOT_DUE_AT",
    "MAILSLOT_CONTENT_TYPE",
    "MAILSLOT_CORRELATION",
    "MAILSLOT_CAUSATION",
    "MAILSLOT_HEADERS",
    "TRACEPARENT",
    "TRACESTATE",
];

/// A command and its bounds.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    command: Arc<str>,
    time_limit: Option<Duration>,
}

impl Handle {
    pub(super) fn new(route: &Route, time_limit: Option<Duration>) -> Self {
        Self { command: route.command.clone(), time_limit }
    }

    /// Runs the command on a message.
    pub(super) async fn run(self, Raw(payload): Raw, context: Context) -> Result<(), HandlerError> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&*self.command);
        describe(&mut command, &context)?;
        let child = child::run(command, payload.bytes().clone(), stop_asked(&context), self.time_limit);
        let Ended { end, stderr } = child
            .await
            .map_err(|error| HandlerError::retryable(format!("failed to start the command: {error}")))?;
        let envelope = context.envelope();
        let result = verdict(&end, &stderr, self.time_limit);
        match &result {
            Ok(()) => {
                tracing::debug!(id = %envelope.id, contract = %envelope.contract, "a command succeeded");
            }
            // The text may say what the payload says; it is kept with the message, not logged.
            Err(_) => {
                tracing::warn!(id = %envelope.id, contract = %envelope.contract, attempt = %context.attempt(), %end, "a command failed");
            }
        }
        result
    }
}

/// Waits until the command should be killed. A shutdown lets it finish; the engine drops it when the grace time is
/// over.
async fn stop_asked(context: &Context) {
    if context.cancellation().cancelled().await == CancelCause::Shutdown {
        std::future::pending::<()>().await;
    }
}

fn verdict(end: &End, stderr: &[u8], limit: Option<Duration>) -> Result<(), HandlerError> {
    let failed = |text: &str| HandlerError::retryable(error_text(text, stderr));
    match end {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) if status.code() == Some(DEAD_LETTER) => {
            Err(HandlerError::permanent(error_text(&end.to_string(), stderr)))
        }
        End::Exited(_) => Err(failed(&end.to_string())),
        End::Stopped => {
            Err(failed("the command was killed because its message was cancelled or its lease lost"))
        }
        End::TimedOut => {
            let limit = limit.unwrap_or_default();
            Err(failed(&format!("the command ran past its limit of {limit:?} and was killed"))
                .reason(Reason::TimedOut))
        }
    }
}

/// What happened, and then as much of the end of the command's own words as fits.
fn error_text(what: &str, stderr: &[u8]) -> String {
    let words = String::from_utf8_lossy(stderr);
    let words = words.trim();
    if words.is_empty() {
        return what.to_owned();
    }
    // The library cuts at the end, where the last words of a command stand; so the beginning is cut here.
    let room = (ERROR_BYTES_MAX - 64).saturating_sub(what.len());
    let start = words.len().saturating_sub(room);
    let start = (start..=words.len()).find(|&at| words.is_char_boundary(at)).unwrap_or(words.len());
    format!("{what}: {}", &words[start..])
}

/// Sets the variables.
fn describe(command: &mut Command, context: &Context) -> Result<(), HandlerError> {
    for name in VARIABLES {
        command.env_remove(name);
    }
    let Envelope {
        id,
        endpoint,
        contract,
        payload,
        tenant,
        session,
        idempotency_key,
        trace,
        headers,
        accepted_at,
        ..
    } = context.envelope();
    command
        .env("MAILSLOT_ID", id.to_string())
        .env("MAILSLOT_CONTRACT", contract.name())
        .env("MAILSLOT_CONTRACT_VERSION", contract.version().to_string())
        .env("MAILSLOT_ENDPOINT", endpoint.as_str())
        .env("MAILSLOT_ATTEMPT", context.attempt().number.to_string())
        .env("MAILSLOT_GENERATION", context.attempt().generation.to_string())
        .env("MAILSLOT_FENCE", context.lease().generation.to_string())
        .env("MAILSLOT_ACCEPTED_AT", accepted_at.to_string())
        .env("MAILSLOT_DUE_AT", context.due_at().to_string())
        .env("MAILSLOT_CONTENT_TYPE", payload.content_type().as_str());
    let traced = trace.context();
    let optional = [
        ("MAILSLOT_TENANT", tenant.as_ref().map(TenantName::as_str)),
        ("MAILSLOT_SESSION", session.as_ref().map(SessionKey::as_str)),
        ("MAILSLOT_KEY", idempotency_key.as_ref().map(IdempotencyKey::as_str)),
        ("MAILSLOT_CORRELATION", trace.correlation().map(CorrelationId::as_str)),
        ("MAILSLOT_CAUSATION", trace.causation().map(CausationId::as_str)),
        ("TRACEPARENT", traced.map(TraceContext::traceparent)),
        ("TRACESTATE", traced.and_then(TraceContext::tracestate)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    if !headers.is_empty() {
        command.env("MAILSLOT_HEADERS", serde_json::to_string(headers)?);
    }
    Ok(())
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => f.write_str(&ended_by(*status)),
            Self::Stopped => f.write_str("killed on request"),
            Self::TimedOut => f.write_str("killed at its time limit"),
        }
    }
}

fn ended_by(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the command exited with {code}"),
        (None, Some(signal)) => format!("the command was killed by signal {signal}"),
        (None, None) => "the command ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailslot::ErrorText;

    #[test]
    fn the_last_words_of_a_command_are_kept() {
        let words = "é".repeat(5_000) + "last words";
        let text = error_text("the command exited with 1", words.as_bytes());
        assert!(text.starts_with("the command exited with 1: é") && text.ends_with("last words"));
        assert_eq!(ErrorText::new(&text).as_str(), text);
        assert_eq!(error_text("what", b" \n"), "what");
    }
}
