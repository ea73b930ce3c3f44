//! The conformance suite on SQLite files.

use mailslot_core::ManualClock;
use mailslot_store_sqlite::{SqliteOptions, SqliteStore};
use mailslot_testkit::store::{self, Opened, TestStore};
use std::path::PathBuf;
use std::sync::Arc;

fn main() {
    store::run("sqlite", |clock| async move {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let path = directory.path().join("inbox.db");
        let opened = Opened::shared(open(path.clone(), clock).await).keep(directory);
        opened.reopen(move |clock| open(path.clone(), clock))
    })
}

async fn open(path: PathBuf, clock: Arc<ManualClock>) -> Arc<dyn TestStore> {
    let options = SqliteOptions::new(path).clock(clock);
    Arc::new(SqliteStore::open(options).await.expect("a fresh file can be opened"))
}
