//! A message that borrows.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 1)]
struct Order<'a> {
    line: &'a str,
}

fn main() {}
