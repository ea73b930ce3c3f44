//! A derive without the attribute.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
struct Order;

fn main() {}
