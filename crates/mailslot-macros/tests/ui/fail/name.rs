//! Names that the core would refuse at run time.

use mailslot_macros::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(name = " ", version = 1)]
struct Blank;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop@order", version = 1)]
struct At;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "shop\torder", version = 1)]
struct Control;

#[derive(Serialize, Deserialize, Message)]
#[message(name = 7, version = 1)]
struct Number;

#[derive(Serialize, Deserialize, Message)]
#[message(name = ORDER, version = 1)]
struct Constant;

fn main() {}
