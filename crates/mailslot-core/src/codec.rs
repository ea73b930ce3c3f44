//! Codecs: how a message becomes bytes with a content type, and comes back.

use crate::field::FieldError;
use crate::limits::{CONTENT_TYPE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;
use std::sync::Arc;

/// Turns a `T` into bytes and back. A message type names its codec; JSON is the default.
pub trait Codec<T> {
    /// The media type of what [`encode`](Codec::encode) writes.
    const CONTENT_TYPE: &'static str;

    /// Writes `value`.
    ///
    /// # Errors
    /// The value has no form in this encoding.
    fn encode(value: &T) -> Result<Bytes, CodecError>;

    /// Reads what some version of this codec wrote.
    ///
    /// # Errors
    /// The bytes are not a `T`. Such a message is dead-lettered with the reason `undecodable`.
    fn decode(bytes: &[u8]) -> Result<T, CodecError>;
}

/// JSON by serde: the default codec.
#[derive(Debug, Clone, Copy)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    const CONTENT_TYPE: &'static str = "application/json";

    fn encode(value: &T) -> Result<Bytes, CodecError> {
        serde_json::to_vec(value).map(Bytes::from).map_err(CodecError::json)
    }

    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(bytes).map_err(CodecError::json)
    }
}

/// A payload could not be written or read. The text says where, never what stood there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecError(String);

impl CodecError {
    /// An error of another codec; `problem` must not quote the payload.
    pub fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    // serde's own text quotes the offending value, which may be a secret; the category and place do not.
    fn json(error: serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Io => "could not be written",
            serde_json::error::Category::Syntax => "is not well-formed JSON",
            serde_json::error::Category::Data => "does not have the shape of its contract",
            serde_json::error::Category::Eof => "ends too early",
        };
        Self(format!("the payload {what} (line {}, column {})", error.line(), error.column()))
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CodecError {}

/// The media type of a payload, such as `application/json`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentType(Arc<str>);

impl ContentType {
    /// Checks a media type that arrives at run time.
    ///
    /// # Errors
    /// Blank, longer than 255 bytes, or not printable ASCII.
    pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
        let text = text.as_ref();
        let printable = text.bytes().all(|b| (0x20..0x7f).contains(&b));
        if text.trim().is_empty() || text.len() > CONTENT_TYPE_BYTES_MAX || !printable {
            let fix = "write a media type such as application/json";
            return Err(FieldError::new("content_type", "is blank, too long or not printable ASCII", fix));
        }
        Ok(Self(Arc::from(text)))
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ContentType {
    fn default() -> Self {
        Self(Arc::from("application/json"))
    }
}

impl TryFrom<String> for ContentType {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl From<ContentType> for String {
    fn from(content_type: ContentType) -> String {
        content_type.0.as_ref().to_owned()
    }
}

/// The content of a message: opaque bytes and what they are. Its debug form hides the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    bytes: Bytes,
    content_type: ContentType,
}

impl Payload {
    /// Takes bytes of any content.
    ///
    /// # Errors
    /// More than [`PAYLOAD_BYTES_MAX`] bytes.
    pub fn new(bytes: impl Into<Bytes>, content_type: ContentType) -> Result<Self, FieldError> {
        let bytes = bytes.into();
        if bytes.len() > PAYLOAD_BYTES_MAX {
            let problem = format!("has {} bytes", bytes.len());
            let fix = format!(
                "send at most {PAYLOAD_BYTES_MAX}; store larger content elsewhere and send its address"
            );
            return Err(FieldError::new("payload", problem, fix));
        }
        Ok(Self { bytes, content_type })
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What the bytes are.
    pub fn content_type(&self) -> &ContentType {
        &self.content_type
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes of {})", self.bytes.len(), self.content_type.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codec_errors_never_quote_the_payload() {
        let error = <Json as Codec<u32>>::decode(br#""my-secret-card-number""#).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        let error = <Json as Codec<String>>::decode(br#""\ud800""#).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }

    #[test]
    fn payload_has_a_bound_and_hides_its_bytes() {
        assert!(Payload::new(vec![0; PAYLOAD_BYTES_MAX], ContentType::default()).is_ok());
        let error = Payload::new(vec![0; PAYLOAD_BYTES_MAX + 1], ContentType::default()).unwrap_err();
        assert_eq!(error.field(), "payload");
        let payload = Payload::new("secret", ContentType::default()).unwrap();
        assert_eq!(format!("{payload:?}"), "Payload(6 bytes of application/json)");
    }
}
