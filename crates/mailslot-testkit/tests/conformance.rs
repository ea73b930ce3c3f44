//! The memory store passes the suite: it is the model that other stores are compared with. So do the wrappers around
//! it, as long as they are told to do nothing.

use mailslot_core::{Clock, MemoryStore};
use mailslot_testkit::chaos::{ChaosStore, FaultPlan};
use mailslot_testkit::recording::{Calls, RecordingStore};
use mailslot_testkit::store::{self, Opened};
use std::sync::Arc;

fn memory(clock: Arc<dyn Clock>) -> Arc<MemoryStore> {
    Arc::new(MemoryStore::with_clock(clock))
}

fn main() {
    let bare = store::trials("memory", |clock| async move { Opened::shared(memory(clock)) });
    let chaos = store::trials("chaos without faults", |clock| async move {
        Opened::new(ChaosStore::new(memory(clock), Arc::new(FaultPlan::none())))
    });
    let recording = store::trials("recording", |clock| async move {
        Opened::new(RecordingStore::new(memory(clock), Calls::default()))
    });
    let trials = bare.into_iter().chain(chaos).chain(recording).collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit()
}
