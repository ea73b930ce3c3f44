//! Keys that are unknown or given twice.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 1, endpoint = "shop")]
struct Unknown;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 1)]
#[message(version = 2)]
struct Twice;

#[derive(Serialize, Deserialize, Message)]
#[message(shape(Shaped<u8>, name = "shop.order", version = 1, crate = mailslot_core))]
struct Shaped<T>(T);

fn main() {}
