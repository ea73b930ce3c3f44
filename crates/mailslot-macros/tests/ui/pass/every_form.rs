//! Every form that is allowed.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 1, crate = mailslot_core)]
struct Order {
    lines: Vec<String>,
}

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.mark", version = 2147483647, crate = "mailslot_core", codec = mailslot_core::Json)]
struct Mark;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.amount", version = 0x2)]
#[message(crate = ::mailslot_core)]
struct Amount(u32);

#[derive(Serialize, Deserialize, Message)]
#[message(crate = mailslot_core)]
#[message(shape(Envelope<Order>, name = "shop.wrapped-order", version = 1))]
#[message(shape(self::Envelope<Amount>, name = "shop.wrapped-amount", version = 1))]
enum Envelope<T> {
    Full(T),
    Empty,
}

fn accept<M: mailslot_core::Message>() {}

fn main() {
    accept::<Order>();
    accept::<Mark>();
    accept::<Amount>();
    accept::<Envelope<Order>>();
    accept::<Envelope<Amount>>();
}
