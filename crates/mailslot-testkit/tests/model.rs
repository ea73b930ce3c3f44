//! The model test tried on itself: the memory store against the memory store.

use mailslot_core::MemoryStore;
use mailslot_testkit::{model, store::Opened};

#[test]
fn the_memory_store_agrees_with_itself() {
    model::run(|clock| async move { Opened::new(MemoryStore::with_clock(clock)) }, 256);
}
