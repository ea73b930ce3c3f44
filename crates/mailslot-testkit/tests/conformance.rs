//! The memory store passes the suite: it is the model that other stores are compared with.

use mailslot_core::MemoryStore;
use mailslot_testkit::store::{self, Opened};

fn main() {
    store::run("memory", |clock| async move { Opened::new(MemoryStore::with_clock(clock)) })
}
