//! Messages of Mailslot itself: the contract in a header, everything else in the broker's own fields.

use super::{BrokerDelivery, Incoming, Mapping};
use crate::broker::BrokerMessage;
use crate::codec::{ContentType, Payload};
use crate::contract::Contract;
use crate::field::FieldError;
use crate::limits::{HEADER_BYTES_MAX, HEADERS_MAX};
use crate::metadata::{Headers, Metadata, Visibility};
use crate::name::{CausationId, CorrelationId, EndpointName, SessionKey};
use crate::trace::{Trace, TraceContext};
use std::collections::BTreeMap;

/// The header that names the contract, as `name@version`.
pub const CONTRACT_HEADER: &str = "mailslot-contract";

/// The header that says how many headers of a delivery were left out, because they pass a bound of a stored message.
pub const HEADERS_OMITTED: &str = "mailslot-headers-omitted";

/// The header that names the message that caused this one.
const CAUSATION: &str = "mailslot-causation";

/// Our own headers, which are not passed on: they begin so.
const OWN: &str = "mailslot-";

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// Reads and writes messages in the broker's own fields: message id, session, content type, correlation id and headers; the
/// contract is in the header [`CONTRACT_HEADER`].
///
/// Headers that a stored message cannot have are left out, and a trace context that is none is ignored: neither is worth a
/// message. Everything else that is wrong is an error.
#[derive(Debug, Clone, Default)]
pub struct NativeMapping {
    contract: Option<Contract>,
}

impl NativeMapping {
    /// Every message has to name its contract.
    pub fn new() -> Self {
        Self::default()
    }

    /// A message that names no contract is of this one: for destinations to which others publish.
    pub fn contract(contract: Contract) -> Self {
        Self { contract: Some(contract) }
    }

    /// A message as others read it by this mapping.
    pub fn write(
        contract: &Contract,
        payload: &Payload,
        metadata: &Metadata,
        message_id: impl Into<String>,
    ) -> BrokerMessage {
        let mut headers: BTreeMap<String, String> = metadata.headers.clone().into();
        headers.insert(CONTRACT_HEADER.to_owned(), contract.to_string());
        if let Some(context) = metadata.trace.context() {
            headers.insert(TRACEPARENT.to_owned(), context.traceparent().to_owned());
            headers.extend(context.tracestate().map(|state| (TRACESTATE.to_owned(), state.to_owned())));
        }
        let causation = metadata.trace.causation().map(|id| id.as_str().to_owned());
        headers.extend(causation.map(|id| (CAUSATION.to_owned(), id)));
        BrokerMessage {
            message_id: Some(message_id.into()),
            session: metadata.session.as_ref().map(|session| session.as_str().to_owned()),
            content_type: Some(payload.content_type().as_str().to_owned()),
            correlation_id: metadata.trace.correlation().map(|id| id.as_str().to_owned()),
            reply_to: None,
            due: match metadata.visibility {
                Visibility::At(at) => Some(at),
                Visibility::Immediate | Visibility::After(_) => None,
            },
            headers,
            payload: payload.bytes().clone(),
        }
    }

    fn contract_of(&self, message: &BrokerMessage) -> Result<Contract, FieldError> {
        if let Some(named) = message.headers.get(CONTRACT_HEADER) {
            return named.parse();
        }
        self.contract.clone().ok_or_else(|| {
            let fix = format!("let the publisher set the header `{CONTRACT_HEADER}` to name@version");
            FieldError::new("contract", "is missing", fix)
        })
    }
}

impl Mapping for NativeMapping {
    fn read(&self, delivery: &BrokerDelivery, endpoint: &EndpointName) -> Result<Incoming, FieldError> {
        let message = &delivery.message;
        let content_type = given(message.content_type.as_ref()).map(ContentType::new).transpose()?;
        Ok(Incoming {
            contract: self.contract_of(message)?,
            payload: Payload::new(message.payload.clone(), content_type.unwrap_or_default())?,
            message_id: message.message_id.clone(),
            metadata: Metadata {
                visibility: message.due.map_or(Visibility::Immediate, Visibility::At),
                trace: trace(&message.headers, message.correlation_id.as_ref())?,
                session: given(message.session.as_ref()).map(SessionKey::new).transpose()?,
                endpoint: endpoint.clone(),
                headers: headers(&message.headers)?,
                ..Metadata::default()
            },
        })
    }
}

/// A field that was filled in: many clients send empty ones for what they have not.
fn given(field: Option<&String>) -> Option<&String> {
    field.filter(|text| !text.is_empty())
}

/// What is known of a message's past. A context that is none is as if there were none, as W3C asks for.
pub(super) fn trace(
    headers: &BTreeMap<String, String>,
    correlation: Option<&String>,
) -> Result<Trace, FieldError> {
    let state = headers.get(TRACESTATE).cloned();
    let context = headers.get(TRACEPARENT).and_then(|parent| {
        let bare = || TraceContext::new(parent, None);
        TraceContext::new(parent, state).or_else(|_| bare()).ok()
    });
    let correlation = given(correlation).map(CorrelationId::new).transpose()?;
    // One that stands alone ties the message to nothing.
    let belongs = context.is_some() || correlation.is_some();
    let causation = headers.get(CAUSATION).filter(|_| belongs).and_then(|id| CausationId::new(id).ok());
    Trace::from_parts(context, correlation, causation)
}

/// The headers of a message without ours, as many as a stored message can have.
pub(super) fn headers(all: &BTreeMap<String, String>) -> Result<Headers, FieldError> {
    let passed_on = |name: &str| {
        let is_trace = name == TRACEPARENT || name == TRACESTATE;
        !is_trace && !name.get(..OWN.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN))
    };
    let theirs = || all.iter().filter(|(name, _)| passed_on(name));
    let whole = theirs().map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Ok(headers) = Headers::new(whole) {
        return Ok(headers);
    }
    // Room for the one that says how many are missing.
    let (mut left, mut bytes_left) = (HEADERS_MAX - 1, HEADER_BYTES_MAX - HEADERS_OMITTED.len() - 20);
    let (mut kept, mut omitted) = (BTreeMap::new(), 0_usize);
    for (name, value) in theirs() {
        let bytes = name.len() + value.len();
        let alone = Headers::new(BTreeMap::from([(name.clone(), value.clone())]));
        if left == 0 || bytes > bytes_left || alone.is_err() {
            omitted += 1;
            continue;
        }
        (left, bytes_left) = (left - 1, bytes_left - bytes);
        kept.insert(name.clone(), value.clone());
    }
    if omitted > 0 {
        kept.insert(HEADERS_OMITTED.to_owned(), omitted.to_string());
    }
    Headers::new(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::DeliveryTag;
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::*;

    fn delivery(message: BrokerMessage) -> BrokerDelivery {
        let (delivery_id, destination) = ("1".to_owned(), "orders".to_owned());
        BrokerDelivery { tag: DeliveryTag(1), delivery_id, destination, redeliveries: None, message }
    }

    fn read(message: BrokerMessage) -> Result<Incoming, FieldError> {
        NativeMapping::new().read(&delivery(message), &EndpointName::default())
    }

    fn named(contract: &str) -> BrokerMessage {
        let headers = BTreeMap::from([(CONTRACT_HEADER.to_owned(), contract.to_owned())]);
        BrokerMessage { headers, ..BrokerMessage::default() }
    }

    fn contexts() -> impl Strategy<Value = Option<TraceContext>> {
        let context = ("[1-9a-f]{32}", "[1-9a-f]{16}", option::of("[a-z]{1,9}=[a-z]{1,9}"));
        option::of(context.prop_map(|(trace, parent, state)| {
            TraceContext::new(format!("00-{trace}-{parent}-01"), state).unwrap()
        }))
    }

    fn traces() -> impl Strategy<Value = Trace> {
        let id = || option::of("[!-~]{1,40}");
        (contexts(), id(), id()).prop_map(|(context, correlation, causation)| {
            let belongs = context.is_some() || correlation.is_some();
            let correlation = correlation.map(|id| CorrelationId::new(id).unwrap());
            let causation = causation.filter(|_| belongs).map(|id| CausationId::new(id).unwrap());
            Trace::from_parts(context, correlation, causation).unwrap()
        })
    }

    /// Of every number up to the bound, and sometimes of as many bytes as fit.
    fn all_headers() -> impl Strategy<Value = Headers> {
        let few = btree_map("h[a-z0-9]{1,6}", "[ -~]{0,240}", 0..=HEADERS_MAX);
        let full =
            (0..HEADER_BYTES_MAX).prop_map(|length| BTreeMap::from([("h".into(), "x".repeat(length))]));
        let most = (0..=HEADERS_MAX)
            .prop_map(|number| (0..number).map(|at| (at.to_string(), String::new())).collect());
        prop_oneof![few, full, most].prop_map(|headers| Headers::new(headers).unwrap())
    }

    fn metadata() -> impl Strategy<Value = Metadata> {
        let at = |second| Visibility::At(jiff::Timestamp::from_second(second).unwrap());
        let due = option::of(0_i64..4_000_000_000);
        let visibility = due.prop_map(move |due| due.map_or(Visibility::Immediate, at));
        (visibility, traces(), option::of("[!-~]{1,40}"), all_headers()).prop_map(
            |(visibility, trace, session, headers)| {
                let session = session.map(|key| SessionKey::new(key).unwrap());
                Metadata { visibility, trace, session, headers, ..Metadata::default() }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            name in "[a-z]{1,9}(\\.[a-z]{1,9})?", version in 1_u16..1_000, content in vec(any::<u8>(), 0..200),
            metadata in metadata(), message_id in ".{0,40}",
        ) {
            let contract: Contract = format!("{name}@{version}").parse().unwrap();
            let payload = Payload::new(content, ContentType::default()).unwrap();
            let written = NativeMapping::write(&contract, &payload, &metadata, message_id.as_str());
            let message_id = Some(message_id);
            prop_assert_eq!(read(written).unwrap(), Incoming { contract, payload, message_id, metadata });
        }
    }

    #[test]
    fn a_message_without_a_contract_is_of_the_default_one_or_none() {
        assert_eq!(read(BrokerMessage::default()).unwrap_err().field(), "contract");
        let contract: Contract = "orders.placed".parse().unwrap();
        let mapping = NativeMapping::contract(contract.clone());
        let read = mapping.read(&delivery(BrokerMessage::default()), &EndpointName::default());
        assert_eq!(read.unwrap().contract, contract);
    }

    #[test]
    fn what_passes_a_bound_is_refused_by_its_name() {
        let long = Some("x".repeat(1_000));
        for (message, field) in [
            (named("a@b"), "contract"),
            (BrokerMessage { session: long.clone(), ..named("a") }, "session"),
            (BrokerMessage { correlation_id: long.clone(), ..named("a") }, "correlation"),
            (BrokerMessage { content_type: long, ..named("a") }, "content_type"),
        ] {
            let error = read(message).unwrap_err();
            assert_eq!(error.field(), field);
            assert!(!error.to_string().contains("xxx"), "{error}");
        }
    }

    #[test]
    fn headers_that_cannot_be_stored_are_left_out_and_counted() {
        let mut message = named("a");
        message.headers.extend((0..70).map(|number| (format!("h{number:02}"), String::new())));
        message.headers.insert("Mailslot-Tenant".to_owned(), "forged".to_owned());
        message.headers.insert("control".to_owned(), "a\nb".to_owned());
        message.headers.insert(TRACEPARENT.to_owned(), "nonsense".to_owned());
        let metadata = read(message).unwrap().metadata;
        assert_eq!(metadata.trace, Trace::default());
        assert_eq!(metadata.headers.iter().count(), HEADERS_MAX);
        assert_eq!(metadata.headers.get(HEADERS_OMITTED), Some("8"));
        assert_eq!(metadata.headers.get("Mailslot-Tenant"), None);
    }
}
