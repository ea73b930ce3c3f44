//! The engine behaves on the memory store as on every other one.

use mailslot_core::MemoryStore;
use mailslot_testkit::engine;
use mailslot_testkit::store::Opened;

fn main() {
    engine::run("memory", |clock| async move { Opened::new(MemoryStore::with_clock(clock)) })
}
