//! Shapes that cannot have a contract.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(shape(Plain, name = "shop.order", version = 1))]
struct Plain;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 1)]
#[message(shape(Mixed<u8>, name = "shop.order", version = 1))]
struct Mixed<T>(T);

#[derive(Serialize, Deserialize, Message)]
#[message(shape(Other<u8>, name = "shop.order", version = 1))]
struct Stranger<T>(T);

#[derive(Serialize, Deserialize, Message)]
#[message(shape(Open<Vec<T>>, name = "shop.order", version = 1))]
struct Open<T>(T);

#[derive(Serialize, Deserialize, Message)]
#[message(shape(Bare<u8>))]
struct Bare<T>(T);

#[derive(Serialize, Deserialize, Message)]
#[message(shape(Same<u8>, name = "shop.order", version = 1))]
#[message(shape(Same<u16>, name = "shop.order", version = 1))]
struct Same<T>(T);

fn main() {}
