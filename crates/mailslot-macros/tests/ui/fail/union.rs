//! A union.

use mailslot_macros::Message;

#[derive(Message)]
#[message(name = "shop.order", version = 1)]
union Order {
    small: u8,
    large: u64,
}

fn main() {}
