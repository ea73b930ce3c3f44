//! Random operations on a SQLite file and on the memory store: every answer and all content are the same.

use mailslot_core::ManualClock;
use mailslot_store_sqlite::{SqliteOptions, SqliteStore};
use mailslot_testkit::model;
use mailslot_testkit::store::{Opened, TestStore};
use std::path::PathBuf;
use std::sync::Arc;

#[test]
fn a_file_agrees_with_the_memory_store() {
    let fresh = |clock| async move {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let path = directory.path().join("inbox.db");
        let opened = Opened::shared(open(path.clone(), clock).await).keep(directory);
        opened.reopen(move |clock| open(path.clone(), clock))
    };
    model::run(fresh, 48);
}

async fn open(path: PathBuf, clock: Arc<ManualClock>) -> Arc<dyn TestStore> {
    let options = SqliteOptions::new(path).clock(clock);
    Arc::new(SqliteStore::open(options).await.expect("the file can be opened"))
}
