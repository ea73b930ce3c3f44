//! Contracts: the stable name and version of a message type, independent of the Rust type's path.

use crate::codec::Codec;
use crate::field::FieldError;
use crate::limits::ENDPOINT_UNITS_MAX;
use crate::name::check_text;
use serde::{Deserialize, Serialize};
use std::any::TypeId;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The stable `(name, version)` of a message type. Written as `name@version`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Contract {
    name: Name,
    version: u32,
}

/// A contract's name: a literal of the derive macro, or shared text, so that a clone never copies it.
#[derive(Debug, Clone)]
enum Name {
    Literal(&'static str),
    Shared(Arc<str>),
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Contract {
    /// Checks a name and version that arrive at run time.
    ///
    /// # Errors
    /// A blank, over-long or unprintable name, a name with `@`, or version 0.
    pub fn new(name: impl Into<String>, version: u32) -> Result<Self, FieldError> {
        let name = name.into();
        check_text("contract", &name, ENDPOINT_UNITS_MAX)?;
        if name.contains('@') {
            return Err(FieldError::new(
                "contract",
                "has an `@` in its name",
                "`@` separates name and version",
            ));
        }
        if version == 0 || i32::try_from(version).is_err() {
            return Err(FieldError::new("contract", "has a version out of range", "count versions from 1"));
        }
        Ok(Self { name: Name::Shared(name.into()), version })
    }

    /// The contract of a message type, whose literals the derive macro checked at compile time.
    pub fn of<M: Message>() -> Self {
        Self { name: Name::Literal(M::NAME), version: M::VERSION }
    }

    /// The name, case-sensitive.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The version, from 1.
    pub fn version(&self) -> u32 {
        self.version
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name(), self.version)
    }
}

impl FromStr for Contract {
    type Err = FieldError;
    /// Reads `name@version`; a name alone means version 1.
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let Some((name, version)) = text.rsplit_once('@') else { return Self::new(text, 1) };
        let version = version.parse().map_err(|_| {
            FieldError::new("contract", "has a version that is no whole number", "write it as `name@1`")
        })?;
        Self::new(name, version)
    }
}

impl TryFrom<String> for Contract {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        text.parse()
    }
}

impl From<Contract> for String {
    fn from(contract: Contract) -> String {
        contract.to_string()
    }
}

/// A type that can be stored: it has a contract and a codec. Implemented by `#[derive(Message)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message: it has no contract",
    label = "this type has no contract",
    note = "add `#[derive(Message)]` with `#[message(name = \"…\", version = 1)]` to it",
    note = "a generic type needs one `#[message(shape(…))]` for each closed shape"
)]
pub trait Message: Sized + Send + 'static {
    /// The contract's name. Changing it orphans every stored message.
    const NAME: &'static str;
    /// The contract's version, from 1.
    const VERSION: u32;
    /// How the message becomes bytes.
    type Codec: Codec<Self>;
}

/// The contracts that a process knows, each with the one Rust type behind it.
#[derive(Debug, Default, Clone)]
pub struct ContractRegistry {
    types: HashMap<Contract, (TypeId, &'static str)>,
}

impl ContractRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers `M`. Registering the same type again changes nothing.
    ///
    /// # Errors
    /// Another type already has this contract.
    pub fn register<M: Message>(&mut self) -> Result<Contract, DuplicateContract> {
        let contract = Contract::of::<M>();
        let (id, name) = (TypeId::of::<M>(), std::any::type_name::<M>());
        let (held_id, held) = *self.types.entry(contract.clone()).or_insert((id, name));
        if held_id == id { Ok(contract) } else { Err(DuplicateContract { contract, held, refused: name }) }
    }

    /// Whether a type is registered under this contract.
    pub fn contains(&self, contract: &Contract) -> bool {
        self.types.contains_key(contract)
    }

    /// Every registered contract, in no particular order.
    pub fn contracts(&self) -> impl Iterator<Item = &Contract> {
        self.types.keys()
    }
}

/// Two Rust types claim the same contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("contract {contract} belongs to `{held}`; give `{refused}` another name or version")]
pub struct DuplicateContract {
    contract: Contract,
    held: &'static str,
    refused: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Json;

    #[derive(Serialize, Deserialize)]
    struct First;
    #[derive(Serialize, Deserialize)]
    struct Second;

    impl Message for First {
        const NAME: &'static str = "test.first";
        const VERSION: u32 = 1;
        type Codec = Json;
    }
    impl Message for Second {
        const NAME: &'static str = "test.first";
        const VERSION: u32 = 1;
        type Codec = Json;
    }

    #[test]
    fn one_contract_belongs_to_one_type() {
        let mut registry = ContractRegistry::new();
        assert!(registry.register::<First>().is_ok());
        assert!(registry.register::<First>().is_ok());
        let error = registry.register::<Second>().unwrap_err().to_string();
        assert!(error.contains("test.first@1") && error.contains("Second"), "{error}");
    }

    #[test]
    fn text_form_round_trips() {
        let contract: Contract = "payments.process@3".parse().unwrap();
        assert_eq!((contract.name(), contract.version()), ("payments.process", 3));
        assert_eq!(contract.to_string(), "payments.process@3");
        assert_eq!("plain".parse::<Contract>().unwrap().version(), 1);
        for bad in ["", " ", "a@0", "a@x", "a@b@1", "a@-1", "a@99999999999"] {
            assert!(bad.parse::<Contract>().is_err(), "{bad}");
        }
    }
}
