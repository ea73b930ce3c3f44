//! Both keys are missing: both are named.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(crate = mailslot_core)]
struct Order;

fn main() {}
