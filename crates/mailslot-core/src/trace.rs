//! Trace context: W3C `traceparent`/`tracestate`, and correlation and causation ids.

use crate::field::FieldError;
use crate::limits::TRACESTATE_BYTES_MAX;
use crate::name::{CausationId, CorrelationId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a message hangs together with others. Nothing is captured from the surroundings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Trace {
    /// On its own.
    #[default]
    None,
    /// Part of a conversation.
    Correlated {
        /// The conversation.
        correlation: CorrelationId,
    },
    /// Part of a conversation, caused by a known message or request.
    Workflow {
        /// The conversation.
        correlation: CorrelationId,
        /// The cause.
        causation: CausationId,
    },
    /// Part of a distributed trace.
    Distributed {
        /// The span that accepted the message.
        context: TraceContext,
        /// The conversation, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correlation: Option<CorrelationId>,
        /// The cause, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        causation: Option<CausationId>,
    },
}

impl Trace {
    /// The variant that holds exactly these parts.
    ///
    /// # Errors
    /// A causation without a correlation or a trace: it would tie the message to nothing.
    pub fn from_parts(
        context: Option<TraceContext>,
        correlation: Option<CorrelationId>,
        causation: Option<CausationId>,
    ) -> Result<Self, FieldError> {
        match (context, correlation, causation) {
            (Some(context), correlation, causation) => {
                Ok(Self::Distributed { context, correlation, causation })
            }
            (None, Some(correlation), Some(causation)) => Ok(Self::Workflow { correlation, causation }),
            (None, Some(correlation), None) => Ok(Self::Correlated { correlation }),
            (None, None, None) => Ok(Self::None),
            (None, None, Some(_)) => Err(FieldError::new(
                "causation",
                "stands alone",
                "give a correlation or a traceparent with it",
            )),
        }
    }

    /// The distributed trace, if there is one.
    pub fn context(&self) -> Option<&TraceContext> {
        match self {
            Self::Distributed { context, .. } => Some(context),
            _ => None,
        }
    }

    /// The conversation, if there is one.
    pub fn correlation(&self) -> Option<&CorrelationId> {
        match self {
            Self::None => None,
            Self::Correlated { correlation } | Self::Workflow { correlation, .. } => Some(correlation),
            Self::Distributed { correlation, .. } => correlation.as_ref(),
        }
    }

    /// The cause, if it is known.
    pub fn causation(&self) -> Option<&CausationId> {
        match self {
            Self::None | Self::Correlated { .. } => None,
            Self::Workflow { causation, .. } => Some(causation),
            Self::Distributed { causation, .. } => causation.as_ref(),
        }
    }
}

/// A W3C trace context, checked. Source: W3C Trace Context, sections 3.2 and 3.3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTraceContext")]
pub struct TraceContext {
    traceparent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

#[derive(Deserialize)]
struct RawTraceContext {
    traceparent: String,
    #[serde(default)]
    tracestate: Option<String>,
}

impl TryFrom<RawTraceContext> for TraceContext {
    type Error = FieldError;
    fn try_from(raw: RawTraceContext) -> Result<Self, FieldError> {
        Self::new(raw.traceparent, raw.tracestate)
    }
}

impl TraceContext {
    /// Checks both headers.
    ///
    /// # Errors
    /// A `traceparent` that is not W3C, or a `tracestate` that is malformed or longer than 512 bytes.
    pub fn new(traceparent: impl Into<String>, tracestate: Option<String>) -> Result<Self, FieldError> {
        let traceparent = traceparent.into();
        if !is_traceparent(&traceparent) {
            let fix =
                "write it as 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, lowercase, ids not all zero";
            return Err(FieldError::new("traceparent", "is not W3C trace context", fix));
        }
        let tracestate = tracestate.filter(|state| !state.trim().is_empty());
        if tracestate.as_deref().is_some_and(|state| !is_tracestate(state)) {
            let fix = "write at most 512 bytes of key=value pairs, separated by commas";
            return Err(FieldError::new("tracestate", "is not W3C trace state", fix));
        }
        Ok(Self { traceparent, tracestate })
    }

    /// The `traceparent` header.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The `tracestate` header.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// The trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.traceparent[3..35]
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent)
    }
}

fn is_traceparent(text: &str) -> bool {
    if !text.is_ascii() || text.len() < 55 || text.len() > TRACESTATE_BYTES_MAX {
        return false;
    }
    let (head, tail) = text.split_at(55);
    let parts: Vec<&str> = head.split('-').collect();
    let [version, trace_id, parent_id, flags] = parts[..] else { return false };
    let hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let zero = |part: &str| part.bytes().all(|b| b == b'0');
    let tail_fits = if version == "00" { tail.is_empty() } else { tail.is_empty() || tail.starts_with('-') };
    hex(version, 2)
        && version != "ff"
        && hex(trace_id, 32)
        && !zero(trace_id)
        && hex(parent_id, 16)
        && !zero(parent_id)
        && hex(flags, 2)
        && tail_fits
        && tail.bytes().all(|b| b.is_ascii_graphic())
}

fn is_tracestate(text: &str) -> bool {
    let member = |member: &str| {
        let member = member.trim_matches([' ', '\t']);
        member.is_empty()
            || member.split_once('=').is_some_and(|(key, value)| {
                !key.is_empty()
                    && key
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-*/@".contains(&b))
                    && !value.is_empty()
                    && value.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=')
            })
    };
    text.len() <= TRACESTATE_BYTES_MAX && text.split(',').count() <= 32 && text.split(',').all(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn traceparent_is_checked_as_w3c_says() {
        assert!(is_traceparent(GOOD));
        assert!(is_traceparent(&format!("cc{}-what-the-future-holds", &GOOD[2..])));
        let bad = [
            "",
            "not-a-trace",
            "{\"traceparent\":1}",
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "ff", 1),
            &format!("{GOOD}-more"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-001",
            &format!("{}\u{e9}", &GOOD[..54]),
        ];
        for text in bad {
            assert!(!is_traceparent(text), "{text}");
        }
    }

    #[test]
    fn tracestate_is_checked_and_blank_means_none() {
        let with = |state: &str| TraceContext::new(GOOD, Some(state.into()));
        assert_eq!(
            with("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE").unwrap().tracestate().map(str::len),
            Some(39)
        );
        assert_eq!(with(" ").unwrap().tracestate(), None);
        for bad in ["novalue", "A=1", "a=\u{7}", &"a=1,".repeat(33), &format!("a={}", "x".repeat(600))] {
            assert!(with(bad).is_err(), "{bad}");
        }
        assert_eq!(with("a=1").unwrap().trace_id(), "0af7651916cd43dd8448eb211c80319c");
    }

    #[test]
    fn a_lone_causation_is_refused() {
        let causation = Some(CausationId::new("c").unwrap());
        assert_eq!(Trace::from_parts(None, None, causation).unwrap_err().field(), "causation");
    }
}
