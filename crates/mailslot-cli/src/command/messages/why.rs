//! Why a message stands where it stands, and what would move it, in words.

use crate::error::Error;
use crate::output::{distance, time};
use jiff::Timestamp;
use mailslot::store::{Filter, MessageRecord, PageRequest};
use mailslot::{Operator, Status};

/// One or two sentences.
pub(super) async fn why(
    operator: &Operator,
    record: &MessageRecord,
    now: Timestamp,
) -> Result<String, Error> {
    Ok(match record.status {
        Status::Pending => pending(operator, record, now).await?,
        Status::Parked => parked(operator, record).await?,
        Status::Leased => leased(record, now),
        Status::Suspended => suspended(record, now),
        Status::DeadLettered => {
            ended(record, "`mailslot messages requeue` tries it again, `skip` gives it up")
        }
        Status::Completed | Status::Skipped | Status::Cancelled => ended(record, "retention deletes it"),
    })
}

async fn pending(operator: &Operator, record: &MessageRecord, now: Timestamp) -> Result<String, Error> {
    let failed = match record.attempt.number {
        0 => String::new(),
        number => {
            let reason = record.reason.map_or("failed", |reason| reason.as_str());
            format!("attempt {number} ended with `{reason}`; ")
        }
    };
    let due_at = record.due_at.unwrap_or(now);
    if due_at > now {
        return Ok(format!("{failed}not due until {} ({})", time(due_at), distance(due_at, now)));
    }
    let since = format!("{failed}due since {} ({})", time(due_at), distance(due_at, now));
    let envelope = &record.envelope;
    let counts = operator.counts().await?;
    let held = counts.iter().any(|count| {
        count.status == Status::Leased
            && count.contract == envelope.contract
            && count.endpoint == envelope.endpoint
    });
    let next = if held {
        "workers hold others of its contract, so its turn comes".to_owned()
    } else {
        format!(
            "no worker holds any of contract {} on endpoint {}: does one run, with a route for it?",
            envelope.contract, envelope.endpoint
        )
    };
    Ok(format!("{since}; {next}"))
}

async fn parked(operator: &Operator, record: &MessageRecord) -> Result<String, Error> {
    let session = record.envelope.session.as_ref().map_or("its session", |session| session.as_str());
    let Some(head) = record.waits_behind else {
        return Ok(format!("waits in session {session}"));
    };
    let found = operator.query(&Filter::of_ids([head]), &PageRequest::default()).await?;
    let endpoint = &record.envelope.endpoint;
    let of_session = found.items.iter().find(|other| other.envelope.endpoint == *endpoint);
    let status = of_session.map_or(Status::Pending, |head| head.status);
    let next = match status {
        Status::DeadLettered => "requeue or skip that one and the session goes on",
        Status::Suspended => "settle its handoff and the session goes on",
        _ => "it is released when that one ends",
    };
    Ok(format!("waits behind message {head} of session {session}, which is {status}; {next}"))
}

fn leased(record: &MessageRecord, now: Timestamp) -> String {
    let worker = record.leased_by.as_deref().unwrap_or("a worker");
    let until = match record.leased_until {
        Some(until) if until <= now => format!("held until {}: the next recovery takes it back", time(until)),
        Some(until) => {
            format!("holds it until {} ({}) unless it extends the lease", time(until), distance(until, now))
        }
        None => "holds it".into(),
    };
    let cancel = if record.cancel_requested { "; someone asked to cancel it" } else { "" };
    format!("{worker} {until}{cancel}")
}

fn suspended(record: &MessageRecord, now: Timestamp) -> String {
    let Some(handoff) = &record.handoff else { return "waits for work elsewhere".into() };
    let job = handoff.external_job_id.as_ref().map_or_else(String::new, |id| format!(" (job {id})"));
    let expected = match handoff.expected_by {
        Some(by) if by < now => format!(", overdue since {}", time(by)),
        Some(by) => format!(", expected by {}", time(by)),
        None => String::new(),
    };
    format!("waits for work elsewhere: {}{job}{expected}; `mailslot handoff` settles it", handoff.reason)
}

fn ended(record: &MessageRecord, next: &str) -> String {
    let at = record.ended_at.map_or_else(String::new, |at| format!(" at {}", time(at)));
    let reason = record.reason.map_or_else(String::new, |reason| format!(" with reason `{reason}`"));
    format!("ended{at}{reason}; {next}")
}
