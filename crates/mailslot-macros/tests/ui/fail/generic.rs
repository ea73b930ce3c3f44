//! A generic type without shapes.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 1)]
struct Envelope<T> {
    content: T,
}

#[derive(Serialize, Deserialize, Message)]
#[message(crate = mailslot_core)]
struct Batch<T, const SIZE: usize> {
    content: T,
}

fn main() {}
