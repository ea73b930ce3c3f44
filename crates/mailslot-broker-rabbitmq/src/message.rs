//! Messages as AMQP carries them.

use crate::error::too_long;
use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use mailslot_core::broker::{BrokerError, BrokerErrorKind, BrokerMessage};
use std::collections::BTreeMap;

/// The header in which a session travels: AMQP has no field for it.
pub const SESSION_HEADER: &str = "mailslot-session";

/// The header of a dead letter that says why it is one.
pub const REASON_HEADER: &str = "mailslot-reason";

/// The header in which a quorum queue counts. It is the delivery's, not the message's.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// The header in which later releases count every time that a message was taken.
const ACQUIRED_COUNT: &str = "x-acquired-count";

/// Kept on disk.
const PERSISTENT: u8 = 2;

/// The properties of a message that is published.
pub(crate) fn properties(message: &BrokerMessage) -> Result<BasicProperties, BrokerError> {
    const OPERATION: &str = "publish";
    if message.due.is_some() {
        let detail = "RabbitMQ keeps no schedule: store the message in an inbox until it is due";
        return Err(BrokerError::new(BrokerErrorKind::Invalid, OPERATION, detail));
    }
    let short = |field: &str, value: &Option<String>| {
        let value = value.as_ref().map(|text| ShortString::try_new(text.clone()));
        value.transpose().map_err(|_| too_long(OPERATION, field))
    };
    let mut properties =
        BasicProperties::default().with_delivery_mode(PERSISTENT).with_headers(headers(message)?);
    if let Some(id) = short("message_id", &message.message_id)? {
        properties = properties.with_message_id(id);
    }
    if let Some(content_type) = short("content_type", &message.content_type)? {
        properties = properties.with_content_type(content_type);
    }
    if let Some(id) = short("correlation_id", &message.correlation_id)? {
        properties = properties.with_correlation_id(id);
    }
    if let Some(reply_to) = short("reply_to", &message.reply_to)? {
        properties = properties.with_reply_to(reply_to);
    }
    Ok(properties)
}

fn headers(message: &BrokerMessage) -> Result<FieldTable, BrokerError> {
    let mut table = FieldTable::default();
    let session = message.session.as_ref().map(|session| (SESSION_HEADER.to_owned(), session));
    let named = message.headers.iter().map(|(name, value)| (name.clone(), value)).chain(session);
    for (name, value) in named {
        let name = ShortString::try_new(name).map_err(|_| too_long("publish", "the name of a header"))?;
        table.insert(name, AMQPValue::LongString(value.as_str().into()));
    }
    Ok(table)
}

/// A message that was delivered, and how often before, if the queue counts.
pub(crate) fn message(properties: &BasicProperties, payload: Vec<u8>) -> (BrokerMessage, Option<u32>) {
    let text = |value: &Option<ShortString>| value.as_ref().map(|text| text.as_str().to_owned());
    let empty = BTreeMap::new();
    let table = properties.headers().as_ref().map_or(&empty, FieldTable::inner);
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in table {
        headers.extend(scalar(value).map(|value| (name.as_str().to_owned(), value)));
    }
    headers.remove(ACQUIRED_COUNT);
    let redeliveries = headers.remove(DELIVERY_COUNT).and_then(|count| count.parse().ok());
    let message = BrokerMessage {
        message_id: text(properties.message_id()),
        session: headers.remove(SESSION_HEADER),
        content_type: text(properties.content_type()),
        correlation_id: text(properties.correlation_id()),
        reply_to: text(properties.reply_to()),
        due: None,
        headers,
        payload: Bytes::from(payload),
    };
    (message, redeliveries)
}

/// A header's value as text. Tables and arrays have none; RabbitMQ writes them, about a message's past.
fn scalar(value: &AMQPValue) -> Option<String> {
    Some(match value {
        AMQPValue::Boolean(value) => value.to_string(),
        AMQPValue::ShortShortInt(value) => value.to_string(),
        AMQPValue::ShortShortUInt(value) => value.to_string(),
        AMQPValue::ShortInt(value) => value.to_string(),
        AMQPValue::ShortUInt(value) => value.to_string(),
        AMQPValue::LongInt(value) => value.to_string(),
        AMQPValue::LongUInt(value) => value.to_string(),
        AMQPValue::LongLongInt(value) => value.to_string(),
        AMQPValue::Float(value) => value.to_string(),
        AMQPValue::Double(value) => value.to_string(),
        AMQPValue::Timestamp(value) => value.to_string(),
        AMQPValue::ShortString(value) => value.as_str().to_owned(),
        AMQPValue::LongString(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_arrives_as_it_was() {
        let sent = BrokerMessage {
            message_id: Some("m1".to_owned()),
            session: Some("s".to_owned()),
            content_type: Some("application/json".to_owned()),
            correlation_id: Some("c".to_owned()),
            reply_to: Some("answers".to_owned()),
            due: None,
            headers: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            payload: Bytes::from_static(b"content"),
        };
        let (arrived, redeliveries) = message(&properties(&sent).unwrap(), sent.payload.to_vec());
        assert_eq!((arrived, redeliveries), (sent, None));
    }

    #[test]
    fn what_others_write_into_headers_becomes_text_or_is_left_out() {
        let mut table = FieldTable::default();
        for (name, value) in [
            ("number", AMQPValue::LongInt(7)),
            ("bool", AMQPValue::Boolean(true)),
            ("x-death", AMQPValue::FieldArray(Vec::new().into())),
            (DELIVERY_COUNT, AMQPValue::LongLongInt(3)),
        ] {
            table.insert(name.into(), value);
        }
        let (arrived, redeliveries) = message(&BasicProperties::default().with_headers(table), Vec::new());
        let expected = [("bool", "true"), ("number", "7")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!((arrived.headers, redeliveries), (BTreeMap::from(expected), Some(3)));
    }

    #[test]
    fn what_amqp_cannot_carry_is_refused_by_its_name() {
        let long = Some("x".repeat(256));
        let messages = [
            (BrokerMessage { message_id: long.clone(), ..BrokerMessage::default() }, "message_id"),
            (BrokerMessage { reply_to: long, ..BrokerMessage::default() }, "reply_to"),
            (
                BrokerMessage {
                    headers: BTreeMap::from([("x".repeat(256), String::new())]),
                    ..BrokerMessage::default()
                },
                "header",
            ),
        ];
        for (message, field) in messages {
            let error = properties(&message).unwrap_err();
            assert_eq!(error.kind(), BrokerErrorKind::Invalid);
            assert!(error.to_string().contains(field), "{error}");
        }
    }
}
