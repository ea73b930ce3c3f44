//! `CloudEvents` 1.0, binary and structured, as brokers carry them.
//!
//! Read by hand: an SDK refuses an event as a whole, while a dead letter has to name the attribute that is wrong.

use super::native::{CONTRACT_HEADER, headers, trace};
use super::{BrokerDelivery, Incoming, Mapping};
use crate::broker::BrokerMessage;
use crate::codec::{ContentType, Payload};
use crate::contract::Contract;
use crate::field::FieldError;
use crate::metadata::{Metadata, Visibility};
use crate::name::{EndpointName, SessionKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How the bindings of brokers begin the name of an attribute that travels as a header: AMQP, its form without a colon, Kafka,
/// and HTTP and NATS.
const PREFIXES: [&str; 4] = ["cloudEvents:", "cloudEvents_", "ce_", "ce-"];

/// How attributes are named in the headers of a message that was read.
const PREFIX: &str = "ce-";

const STRUCTURED: &str = "application/cloudevents";
const STRUCTURED_JSON: &str = "application/cloudevents+json";

/// The attribute that says what belongs together, by the extension "Partitioning".
const PARTITION_KEY: &str = "partitionkey";

/// Reads `CloudEvents`: those whose content is the whole event as JSON, and those whose attributes are headers.
///
/// The event's `type` is the contract, with version 1, unless a [contract is named for it](Self::contract_for). Its
/// `partitionkey` is the session, its `traceparent` the trace. What it is recognised by is the broker's message id; without
/// one, `source` and `id` together, which is what makes an event unique: two sources may count alike. All attributes arrive as
/// headers `ce-<name>`.
///
/// An event without `id`, `source`, `type` or `specversion` is none.
#[derive(Debug, Clone)]
pub struct CloudEventsMapping {
    contracts: BTreeMap<String, Contract>,
    session_attribute: String,
}

impl Default for CloudEventsMapping {
    fn default() -> Self {
        Self::new()
    }
}

impl CloudEventsMapping {
    /// Takes types as names of contracts.
    pub fn new() -> Self {
        Self { contracts: BTreeMap::new(), session_attribute: PARTITION_KEY.to_owned() }
    }

    /// Events of this type are of this contract.
    pub fn contract_for(mut self, event_type: impl Into<String>, contract: Contract) -> Self {
        self.contracts.insert(event_type.into(), contract);
        self
    }

    /// The attribute that names the session, instead of `partitionkey`; without one an event is in no session.
    pub fn session_attribute(mut self, name: impl Into<String>) -> Self {
        self.session_attribute = name.into();
        self
    }
}

impl Mapping for CloudEventsMapping {
    fn read(&self, delivery: &BrokerDelivery, endpoint: &EndpointName) -> Result<Incoming, FieldError> {
        let message = &delivery.message;
        let event = Event::read(message)?;
        let (id, source) =
            (event.required("id", "cloudevents.id")?, event.required("source", "cloudevents.source")?);
        let of_event = || format!("{source} {id}");
        let session = event.attributes.get(&self.session_attribute).filter(|session| !session.is_empty());
        Ok(Incoming {
            contract: event.contract(&self.contracts)?,
            message_id: Some(message.message_id.clone().filter(|id| !id.is_empty()).unwrap_or_else(of_event)),
            metadata: Metadata {
                visibility: message.due.map_or(Visibility::Immediate, Visibility::At),
                trace: trace(&event.attributes, message.correlation_id.as_ref())?,
                session: session.map(SessionKey::new).transpose()?,
                endpoint: endpoint.clone(),
                headers: headers(&event.headers())?,
                ..Metadata::default()
            },
            payload: Payload::new(event.data, event.content_type)?,
        })
    }
}

/// An event, whichever way it came.
struct Event {
    attributes: BTreeMap<String, String>,
    /// What else the message had.
    others: BTreeMap<String, String>,
    data: Bytes,
    content_type: ContentType,
}

impl Event {
    fn read(message: &BrokerMessage) -> Result<Self, FieldError> {
        let content_type = message.content_type.as_deref().unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let event = if media_type == STRUCTURED_JSON {
            Self::structured(message)?
        } else if media_type.starts_with(STRUCTURED) {
            let fix = format!("send single events, in binary mode or as {STRUCTURED_JSON}");
            return Err(FieldError::new("content_type", "is a batch or a format that is not read", fix));
        } else {
            Self::binary(message)?
        };
        event.required("specversion", "cloudevents.specversion").and_then(|version| {
            let fix = "send events of version 1.0";
            let other = || FieldError::new("cloudevents.specversion", "is not 1.0", fix);
            if version == "1.0" { Ok(()) } else { Err(other()) }
        })?;
        Ok(event)
    }

    /// Attributes are headers, the content is the data.
    fn binary(message: &BrokerMessage) -> Result<Self, FieldError> {
        let (mut attributes, mut others) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in &message.headers {
            match PREFIXES.into_iter().find_map(|prefix| name.strip_prefix(prefix)) {
                Some(attribute) => attributes.insert(attribute.to_ascii_lowercase(), value.clone()),
                None => others.insert(name.clone(), value.clone()),
            };
        }
        let given = message.content_type.as_deref().filter(|text| !text.is_empty());
        let content_type = given.map(ContentType::new).transpose()?.unwrap_or_default();
        Ok(Self { attributes, others, data: message.payload.clone(), content_type })
    }

    /// The content is the whole event.
    fn structured(message: &BrokerMessage) -> Result<Self, FieldError> {
        let wrong = |_| {
            let fix = "send one JSON object with the attributes of the event";
            FieldError::new("cloudevents", "is no JSON object", fix)
        };
        let mut event: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(&message.payload).map_err(wrong)?;
        let (data, encoded) = (event.remove("data"), event.remove("data_base64"));
        let attributes: BTreeMap<_, _> =
            event.into_iter().filter_map(|(name, value)| Some((name, scalar(&value)?))).collect();
        let content_type =
            attributes.get("datacontenttype").map(ContentType::new).transpose()?.unwrap_or_default();
        let data = content(data, encoded, &content_type)?;
        Ok(Self { attributes, others: message.headers.clone(), data, content_type })
    }

    fn required(&self, name: &str, field: &'static str) -> Result<&str, FieldError> {
        self.attributes.get(name).map(String::as_str).filter(|value| !value.is_empty()).ok_or_else(|| {
            FieldError::new(field, "is missing", "let the producer set every required attribute of the event")
        })
    }

    fn contract(&self, contracts: &BTreeMap<String, Contract>) -> Result<Contract, FieldError> {
        let event_type = self.required("type", "cloudevents.type")?;
        contracts.get(event_type).cloned().map_or_else(|| Contract::new(event_type, 1), Ok)
    }

    fn headers(&self) -> BTreeMap<String, String> {
        let attributes =
            self.attributes.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value.clone()));
        let others = self.others.iter().map(|(name, value)| (name.clone(), value.clone()));
        others.chain(attributes).filter(|(name, _)| name != CONTRACT_HEADER).collect()
    }
}

/// The text of an attribute. An attribute is a string, a number or a truth value; anything else is none.
fn scalar(value: &RawValue) -> Option<String> {
    match serde_json::from_str(value.get()).ok()? {
        Value::String(text) => Some(text),
        Value::Bool(_) | Value::Number(_) => Some(value.get().to_owned()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The content of an event. JSON is taken as it was written: whoever reads it and writes it again rounds long numbers.
fn content(
    data: Option<Box<RawValue>>,
    encoded: Option<Box<RawValue>>,
    content_type: &ContentType,
) -> Result<Bytes, FieldError> {
    let is_json =
        content_type.as_str().split(';').next().is_some_and(|media_type| media_type.contains("json"));
    let text = |value: &RawValue| serde_json::from_str::<String>(value.get()).ok();
    // A member without a value is as if it were not there.
    match (data, encoded.filter(|encoded| encoded.get() != "null")) {
        (None, None) => Ok(Bytes::new()),
        (Some(data), None) => {
            // Of a content that is no JSON, the string is the content.
            let plain = if is_json { None } else { text(&data) };
            Ok(Bytes::from(plain.unwrap_or_else(|| data.get().to_owned())))
        }
        (None, Some(encoded)) => {
            text(&encoded).and_then(|text| STANDARD.decode(text).ok()).map(Bytes::from).ok_or_else(|| {
                FieldError::new("cloudevents.data_base64", "is no Base64", "encode the data by RFC 4648")
            })
        }
        (Some(_), Some(_)) => {
            let fix = "send the content in one of `data` and `data_base64`";
            Err(FieldError::new("cloudevents.data", "is there twice", fix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::DeliveryTag;
    use serde_json::Map;

    fn read_by(mapping: &CloudEventsMapping, message: BrokerMessage) -> Result<Incoming, FieldError> {
        let (delivery_id, destination) = ("1".to_owned(), "orders".to_owned());
        let delivery =
            BrokerDelivery { tag: DeliveryTag(1), delivery_id, destination, redeliveries: None, message };
        mapping.read(&delivery, &EndpointName::default())
    }

    fn read(message: BrokerMessage) -> Result<Incoming, FieldError> {
        read_by(&CloudEventsMapping::new(), message)
    }

    const ATTRIBUTES: [(&str, &str); 6] = [
        ("specversion", "1.0"),
        ("type", "com.example.someevent"),
        ("source", "/mycontext/subcontext"),
        ("id", "1234-1234-1234"),
        ("time", "2018-04-05T03:56:24Z"),
        ("partitionkey", "customer 7"),
    ];

    fn binary(prefix: &str) -> BrokerMessage {
        let headers = ATTRIBUTES.map(|(name, value)| (format!("{prefix}{name}"), value.to_owned()));
        BrokerMessage {
            content_type: Some("application/json; charset=utf-8".to_owned()),
            headers: BTreeMap::from(headers),
            payload: r#"{"a":1}"#.into(),
            ..BrokerMessage::default()
        }
    }

    fn structured(content: Value) -> BrokerMessage {
        BrokerMessage {
            content_type: Some("application/cloudevents+json; charset=utf-8".to_owned()),
            payload: content.to_string().into(),
            ..BrokerMessage::default()
        }
    }

    fn whole() -> Map<String, Value> {
        ATTRIBUTES.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    #[test]
    fn an_event_is_the_same_in_every_binding() {
        let mut event = whole();
        event.insert("data".to_owned(), serde_json::json!({"a": 1}));
        let bindings = PREFIXES.map(binary).into_iter().chain([structured(event.into())]);
        for message in bindings {
            let Incoming { contract, payload, message_id, metadata } = read(message).unwrap();
            assert_eq!(contract.to_string(), "com.example.someevent@1");
            assert_eq!(payload.bytes(), r#"{"a":1}"#);
            assert_eq!(message_id.as_deref(), Some("/mycontext/subcontext 1234-1234-1234"));
            assert_eq!(metadata.session.as_ref().map(SessionKey::as_str), Some("customer 7"));
            for (name, value) in ATTRIBUTES {
                assert_eq!(metadata.headers.get(&format!("ce-{name}")), Some(value));
            }
        }
    }

    #[test]
    fn a_missing_attribute_is_named_in_both_modes() {
        for name in ["id", "source", "type", "specversion"] {
            for empty in [false, true] {
                let (mut message, mut event) = (binary("ce_"), whole());
                if empty {
                    message.headers.insert(format!("ce_{name}"), String::new());
                    event.insert(name.to_owned(), "".into());
                } else {
                    message.headers.remove(&format!("ce_{name}"));
                    event.remove(name);
                }
                for message in [message, structured(event.into())] {
                    assert_eq!(read(message).unwrap_err().field(), format!("cloudevents.{name}"));
                }
            }
        }
    }

    #[test]
    fn the_brokers_id_comes_before_that_of_the_event() {
        let message = BrokerMessage { message_id: Some("m1".to_owned()), ..binary("ce_") };
        assert_eq!(read(message).unwrap().message_id.as_deref(), Some("m1"));
    }

    #[test]
    fn a_type_can_be_another_contract_and_a_session_another_attribute() {
        let contract: Contract = "orders.placed@2".parse().unwrap();
        let mapping = CloudEventsMapping::new()
            .contract_for("com.example.someevent", contract.clone())
            .session_attribute("subject");
        let mut message = binary("ce_");
        message.headers.insert("ce_subject".to_owned(), "order 9".to_owned());
        let incoming = read_by(&mapping, message).unwrap();
        assert_eq!(incoming.contract, contract);
        assert_eq!(incoming.metadata.session.as_ref().map(SessionKey::as_str), Some("order 9"));
        assert_eq!(read_by(&mapping, binary("ce_")).unwrap().metadata.session, None);
    }

    #[test]
    fn the_trace_of_an_event_is_its_trace() {
        let mut message = binary("ce_");
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        message.headers.insert("ce_traceparent".to_owned(), parent.to_owned());
        let trace = read(message).unwrap().metadata.trace;
        assert_eq!(trace.context().map(ToString::to_string).as_deref(), Some(parent));
    }

    #[test]
    fn data_comes_in_three_forms_and_never_twice() {
        let with = |name: &str, value: Value, content_type: &str| {
            let mut event = whole();
            event.insert(name.to_owned(), value);
            event.insert("datacontenttype".to_owned(), content_type.into());
            read(structured(event.into())).map(|incoming| incoming.payload.bytes().clone())
        };
        assert_eq!(with("data", "<a/>".into(), "application/xml").unwrap(), "<a/>");
        assert_eq!(with("data", "text".into(), "application/json").unwrap(), r#""text""#);
        assert_eq!(with("data_base64", "aGk=".into(), "text/plain").unwrap(), "hi");
        assert_eq!(
            with("data_base64", "?".into(), "text/plain").unwrap_err().field(),
            "cloudevents.data_base64"
        );
        let mut twice = whole();
        twice.insert("data".to_owned(), 1.into());
        twice.insert("data_base64".to_owned(), "aGk=".into());
        assert_eq!(read(structured(twice.into())).unwrap_err().field(), "cloudevents.data");
        assert_eq!(read(structured(whole().into())).unwrap().payload.bytes(), "");
    }

    #[test]
    fn json_data_is_taken_as_it_was_written() {
        let data = r#"{"z": 12345678901234567890123, "a": 0.10000000000000000555, "a": 1e400}"#;
        let payload = format!(
            r#"{{"specversion":"1.0","type":"t","source":"/s","id":"1","data": {data} ,"data_base64":null,"n":9e3}}"#
        );
        let message = BrokerMessage { payload: payload.into(), ..structured(Value::Null) };
        let incoming = read(message).unwrap();
        assert_eq!(incoming.payload.bytes(), data);
        assert_eq!(incoming.metadata.headers.get("ce-n"), Some("9e3"));
    }

    #[test]
    fn what_is_no_single_event_of_version_one_is_refused() {
        let batch = Some("application/cloudevents-batch+json".to_owned());
        assert_eq!(
            read(BrokerMessage { content_type: batch, ..binary("ce_") }).unwrap_err().field(),
            "content_type"
        );
        let mut old = binary("ce_");
        old.headers.insert("ce_specversion".to_owned(), "0.3".to_owned());
        assert_eq!(read(old).unwrap_err().field(), "cloudevents.specversion");
        let text = BrokerMessage { payload: "secret".into(), ..structured(Value::Null) };
        let error = read(text).unwrap_err();
        assert_eq!(error.field(), "cloudevents");
        assert!(!error.to_string().contains("secret"));
    }
}
