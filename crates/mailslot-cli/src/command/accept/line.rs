//! One line of NDJSON: a message, read so that every refusal names the field and the fix, and no value.

use super::draft::Draft;
use crate::args::{instant, signed_duration};
use jiff::{SignedDuration, Timestamp};
use mailslot::{FieldError, Priority, Visibility};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

const KNOWN: &str = "contract, payload, key, tenant, session, endpoint, due_in, due_at, priority, id, correlation, \
                     causation, traceparent, tracestate, headers, content_type";

/// Reads a line over the defaults that the flags gave.
///
/// The payload keeps its bytes as they stand in the line. If its content type is not JSON it must be a JSON string,
/// whose text is then the payload.
pub(super) fn read(line: &[u8], defaults: &Draft) -> Result<(Draft, Vec<u8>), FieldError> {
    let Members(members) = serde_json::from_slice(line).map_err(|error| {
        let problem = if error.is_data() { "is no JSON object" } else { "is not JSON" };
        FieldError::new(
            "line",
            format!("{problem} (column {})", error.column()),
            "write one object on each line",
        )
    })?;
    let mut draft = defaults.clone();
    let mut payload = None;
    let mut seen = Vec::new();
    for (name, value) in &members {
        if seen.contains(&name) {
            return Err(FieldError::new(
                "line",
                format!("has `{}` twice", known(name)),
                "leave one of them out",
            ));
        }
        seen.push(name);
        if name == "payload" {
            payload = Some(*value);
        } else {
            take(&mut draft, name, value, defaults)?;
        }
    }
    if members.iter().any(|(name, _)| name == "due_in") && members.iter().any(|(name, _)| name == "due_at") {
        return Err(FieldError::new("due_at", "stands beside `due_in`", "leave one of them out"));
    }
    let payload =
        payload.ok_or_else(|| FieldError::new("payload", "is missing", "add it; null is a payload too"))?;
    let bytes = if draft.is_json() {
        payload.get().as_bytes().to_vec()
    } else {
        text::<String>("payload", payload, "a string, as its content type is not JSON")?.into_bytes()
    };
    Ok((draft, bytes))
}

/// A name that may be shown: ours, or a stranger's in short.
fn known(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

fn take(draft: &mut Draft, name: &str, value: &RawValue, defaults: &Draft) -> Result<(), FieldError> {
    let string = |field| text::<String>(field, value, "a string").map(Some);
    match name {
        "contract" => draft.contract = string("contract")?,
        "key" => draft.key = string("key")?,
        "tenant" => draft.tenant = string("tenant")?,
        "session" => draft.session = string("session")?,
        "endpoint" => draft.endpoint = string("endpoint")?,
        "id" => draft.id = string("id")?,
        "correlation" => draft.correlation = string("correlation")?,
        "causation" => draft.causation = string("causation")?,
        "traceparent" => draft.traceparent = string("traceparent")?,
        "tracestate" => draft.tracestate = string("tracestate")?,
        "content_type" => draft.content_type = string("content_type")?,
        "due_in" => draft.due = Some(Visibility::After(due_in(value)?)),
        "due_at" => draft.due = Some(Visibility::At(due_at(value)?)),
        "priority" => draft.priority = Some(priority(value)?),
        "headers" => {
            let headers = text::<BTreeMap<String, String>>("headers", value, "an object of strings")?;
            draft.headers = defaults.headers.clone().into_iter().chain(headers).collect();
        }
        _ => {
            let problem = format!("has the unknown field `{}`", known(name));
            return Err(FieldError::new("line", problem, format!("use one of {KNOWN}")));
        }
    }
    Ok(())
}

fn text<T: DeserializeOwned>(field: &'static str, value: &RawValue, wanted: &str) -> Result<T, FieldError> {
    // serde's own text quotes the value.
    serde_json::from_str(value.get())
        .map_err(|_| FieldError::new(field, "has the wrong type", format!("write {wanted}")))
}

fn due_in(value: &RawValue) -> Result<SignedDuration, FieldError> {
    let text: String = text("due_in", value, "a string such as \"10m\"")?;
    signed_duration(&text)
        .map_err(|_| FieldError::new("due_in", "is no length of time", "write it as \"10m\""))
}

fn due_at(value: &RawValue) -> Result<Timestamp, FieldError> {
    let text: String = text("due_at", value, "a string such as \"2026-01-31T12:00:00Z\"")?;
    let fix = "write it as \"2026-01-31T12:00:00Z\"";
    instant(&text).map_err(|_| FieldError::new("due_at", "is no instant", fix))
}

fn priority(value: &RawValue) -> Result<Priority, FieldError> {
    text("priority", value, "\"high\", \"normal\" or \"low\"")
}

/// The members of an object in their order, with repeated names, so that a repetition is found.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// What a line calls a field of the library.
pub(super) fn field_of(field: &str) -> String {
    let name = match field {
        "line" => return "the line".into(),
        "idempotency_key" => "key",
        "due" => "due_in or due_at",
        other => other,
    };
    format!("`{name}`")
}
