//! `#[derive(Message)]`: gives a type its contract, checked while it compiles.
//!
//! Users get it from the `mailslot` crate. Read in this order: `attribute` (what is written), `contract` (which names
//! and versions are allowed), `expand` (what comes out).

mod attribute;
mod contract;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Message` for a struct or an enum.
///
/// ```
/// # extern crate mailslot_core as mailslot;
/// # use mailslot_macros::Message;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(name = "payments.process-payment", version = 1)]
/// struct ProcessPayment {
///     payment: String,
///     amount_cents: i64,
/// }
/// # fn main() { assert_eq!(mailslot::Contract::of::<ProcessPayment>().to_string(), "payments.process-payment@1"); }
/// ```
///
/// | Key | Value | Without it |
/// |---|---|---|
/// | `name` | the contract's name, a string literal: not blank, at most 260 UTF-16 units, no control character, no `@` | an error |
/// | `version` | the contract's version, a whole number from 1 to 2147483647 | an error |
/// | `codec` | the path of a `Codec` | `Json` |
/// | `crate` | the path of the crate that has `Message` and `Json` | `::mailslot` |
///
/// # Generic types
///
/// A contract belongs to one closed type, so a generic type lists its shapes. Each gets a contract of its own; `codec`
/// and `crate` beside the shapes hold for all of them, and a shape's own `codec` comes before that.
///
/// ```
/// # extern crate mailslot_core as mailslot;
/// # use mailslot_macros::Message;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Order;
/// # #[derive(Serialize, Deserialize)] struct Refund;
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(shape(Envelope<Order>, name = "shop.order", version = 1))]
/// #[message(shape(Envelope<Refund>, name = "shop.refund", version = 1))]
/// struct Envelope<T> {
///     content: T,
/// }
/// # fn main() { assert_eq!(mailslot::Contract::of::<Envelope<Refund>>().to_string(), "shop.refund@1"); }
/// ```
///
/// # Errors
///
/// Each of these does not compile, with a sentence that says the fix: a missing, unreadable or unknown key; a name or
/// version out of bounds; a generic type without shapes; two shapes with one contract; a union; a lifetime parameter.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::message(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
