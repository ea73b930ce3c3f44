//! What the derive macro writes, seen through the core's traits.

use mailslot_core::{Codec, CodecError, Contract, ContractRegistry, Message, Metadata, NewMessage};
use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = "payments.process-payment", version = 3, crate = mailslot_core)]
struct ProcessPayment {
    amount_cents: i64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.nightly-report", version = 1)]
#[message(crate = "mailslot_core")]
struct NightlyReport;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.change", version = 1, crate = ::mailslot_core)]
enum Change {
    Renamed { to: String },
    Closed,
}

#[derive(Serialize, Deserialize, Message)]
#[message(crate = mailslot_core)]
#[message(shape(Envelope<Order>, name = "shop.order", version = 1))]
#[message(shape(Envelope<Refund>, name = "shop.order", version = 2))]
struct Envelope<T> {
    content: T,
}

#[derive(Serialize, Deserialize)]
struct Order;

#[derive(Serialize, Deserialize)]
struct Refund;

#[derive(Message)]
#[message(crate = mailslot_core, codec = Text)]
#[message(shape(Words<1>, name = "text.word", version = 1))]
#[message(shape(Words<2>, name = "text.pair", version = 1, codec = Shout))]
struct Words<const COUNT: usize>([String; COUNT]);

struct Text;

impl<const COUNT: usize> Codec<Words<COUNT>> for Text {
    const CONTENT_TYPE: &'static str = "text/plain";

    fn encode(value: &Words<COUNT>) -> Result<bytes::Bytes, CodecError> {
        Ok(value.0.join(" ").into())
    }

    fn decode(bytes: &[u8]) -> Result<Words<COUNT>, CodecError> {
        let words: Vec<_> = String::from_utf8_lossy(bytes).split(' ').map(str::to_owned).collect();
        words.try_into().map(Words).map_err(|_| CodecError::new("has another number of words"))
    }
}

struct Shout;

impl<const COUNT: usize> Codec<Words<COUNT>> for Shout {
    const CONTENT_TYPE: &'static str = "text/shout";

    fn encode(value: &Words<COUNT>) -> Result<bytes::Bytes, CodecError> {
        Ok(value.0.join(" ").to_uppercase().into())
    }

    fn decode(bytes: &[u8]) -> Result<Words<COUNT>, CodecError> {
        Text::decode(bytes)
    }
}

#[track_caller]
fn check<M: Message>(message: &M, contract: &str, content_type: &str, bytes: &str) {
    let encoded = NewMessage::encode(message, Metadata::default()).expect("the message encodes");
    assert_eq!(encoded.contract.to_string(), contract);
    assert_eq!(encoded.payload.content_type().as_str(), content_type);
    assert_eq!(encoded.payload.bytes(), bytes);
    assert!(M::Codec::decode(encoded.payload.bytes()).is_ok());
}

#[test]
fn a_struct_carries_its_contract_as_json() {
    let message = ProcessPayment { amount_cents: 5 };
    check(&message, "payments.process-payment@3", "application/json", r#"{"amount_cents":5}"#);
}

#[test]
fn unit_structs_and_enums_are_messages() {
    check(&NightlyReport, "shop.nightly-report@1", "application/json", "null");
    let renamed = Change::Renamed { to: "x".into() };
    check(&renamed, "shop.change@1", "application/json", r#"{"Renamed":{"to":"x"}}"#);
    check(&Change::Closed, "shop.change@1", "application/json", r#""Closed""#);
}

#[test]
fn each_shape_has_its_own_contract() {
    check(&Envelope { content: Order }, "shop.order@1", "application/json", r#"{"content":null}"#);
    check(&Envelope { content: Refund }, "shop.order@2", "application/json", r#"{"content":null}"#);
}

#[test]
fn a_codec_holds_for_every_shape_that_names_none() {
    check(&Words(["a".to_owned()]), "text.word@1", "text/plain", "a");
    check(&Words(["a".to_owned(), "b".to_owned()]), "text.pair@1", "text/shout", "A B");
}

#[test]
fn what_the_macro_accepts_the_registry_takes() {
    let mut registry = ContractRegistry::new();
    registry.register::<ProcessPayment>().unwrap();
    registry.register::<Envelope<Order>>().unwrap();
    registry.register::<Envelope<Refund>>().unwrap();
    let contract: Contract = "shop.order@2".parse().unwrap();
    assert!(registry.contains(&contract));
}
