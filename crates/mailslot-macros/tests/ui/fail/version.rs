//! Versions that the core would refuse at run time.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 0)]
struct Zero;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = -1)]
struct Negative;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = 2147483648)]
struct Large;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = "1")]
struct Text;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop.order", version = VERSION)]
struct Constant;

fn main() {}
