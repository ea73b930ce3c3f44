//! Which files are opened, and how.

use crate::support::{accept, by_hand, open, order, place, raw};
use mailslot_core::{OperatorStore as _, StoreError, StoreErrorKind};
use mailslot_store_sqlite::{SqliteOptions, SqliteStore};
use std::path::Path;

async fn refused(options: SqliteOptions) -> StoreError {
    SqliteStore::open(options).await.unwrap_err()
}

#[track_caller]
fn check(error: &StoreError, kind: StoreErrorKind, part: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[tokio::test]
async fn a_fresh_file_becomes_an_inbox_of_the_wanted_version() {
    let (_directory, path) = place();
    let store = SqliteStore::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let schema = store.schema().await.unwrap();
    assert_eq!((schema.backend, schema.found), ("sqlite", schema.wanted));
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut raw(&path).await).await.unwrap();
    assert_eq!(id, i64::from(u32::from_be_bytes(*b"Mslt")));
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_left_as_it_was() {
    let (_directory, path) = place();
    by_hand(&path, "CREATE TABLE invoice (id INTEGER)").await;
    let before = std::fs::read(&path).unwrap();
    check(&refused(SqliteOptions::new(&path)).await, StoreErrorKind::Schema, "another program");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn the_mark_of_another_program_is_refused() {
    let (_directory, path) = place();
    by_hand(&path, "PRAGMA application_id = 7; CREATE TABLE invoice (id INTEGER)").await;
    check(&refused(SqliteOptions::new(&path)).await, StoreErrorKind::Schema, "another program");
}

#[tokio::test]
async fn an_application_may_share_its_file() {
    let (_directory, path) = place();
    by_hand(&path, "CREATE TABLE invoice (id INTEGER)").await;
    let store = SqliteStore::open(SqliteOptions::new(&path).share_with_application(true)).await.unwrap();
    accept(&store, [order()]).await;
    // Once the inbox is in it, the file needs no further consent.
    assert_eq!(open(&path).await.counts().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_application_may_add_tables_to_the_inbox() {
    let (_directory, path) = place();
    accept(&open(&path).await, [order()]).await;
    by_hand(&path, "CREATE TABLE invoice (id INTEGER)").await;
    assert_eq!(open(&path).await.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (_directory, path) = place();
    drop(open(&path).await);
    by_hand(&path, "INSERT INTO mailslot_schema VALUES (99, '0099_from_the_future', 0)").await;
    check(&refused(SqliteOptions::new(&path)).await, StoreErrorKind::Schema, "newer mailslot; upgrade");
}

#[tokio::test]
async fn a_schema_that_was_changed_by_hand_is_refused_by_the_name_of_the_object() {
    let changes = [
        ("DROP INDEX mailslot_ready_due", "`mailslot_ready_due` is missing"),
        ("ALTER TABLE mailslot_tally ADD COLUMN note TEXT", "`mailslot_tally` differs"),
        ("CREATE INDEX my_index ON mailslot_message (tenant)", "`my_index` is not ours"),
        ("CREATE TRIGGER t AFTER DELETE ON mailslot_ready BEGIN SELECT 1; END", "`t` is not ours"),
    ];
    for (change, part) in changes {
        let (_directory, path) = place();
        drop(open(&path).await);
        by_hand(&path, change).await;
        check(&refused(SqliteOptions::new(&path)).await, StoreErrorKind::Schema, part);
    }
}

#[tokio::test]
async fn drift_beneath_an_open_store_is_found_by_its_check() {
    let (_directory, path) = place();
    let store = open(&path).await;
    by_hand(&path, "CREATE INDEX my_index ON mailslot_message (tenant)").await;
    let found = store.check().await.unwrap();
    assert_eq!(found.iter().map(|violation| violation.invariant).collect::<Vec<_>>(), ["schema"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let (_directory, path) = place();
    std::fs::write(&path, "To whom it may concern, this is a letter. ".repeat(100)).unwrap();
    check(&refused(SqliteOptions::new(&path)).await, StoreErrorKind::Schema, "not a SQLite database");
}

/// SQLite takes a file whose header asks for a newer writer as read-only, whoever opens it. (File permissions would
/// not stop a test that runs as root.) Source: "Database File Format", section 1.3.3, `fileformat2.html`.
fn make_read_only(path: &Path) {
    const WRITE_VERSION: usize = 18;
    let mut bytes = std::fs::read(path).unwrap();
    bytes[WRITE_VERSION] = 3;
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_read_only_file_is_refused_at_once() {
    let (_directory, path) = place();
    by_hand(&path, "VACUUM").await;
    std::fs::write(&path, {
        let (_other, model) = place();
        by_hand(&model, "PRAGMA application_id = 1299410036").await;
        std::fs::read(model).unwrap()
    })
    .unwrap();
    make_read_only(&path);
    let error = refused(SqliteOptions::new(&path)).await;
    check(&error, StoreErrorKind::NotWritable, "read-only");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_missing_directory_or_file_is_named_as_such() {
    let (directory, path) = place();
    let nowhere = SqliteOptions::new(directory.path().join("none/inbox.db"));
    check(&refused(nowhere).await, StoreErrorKind::Unavailable, "cannot be opened");
    let missing = SqliteOptions::new(&path).create_if_missing(false);
    check(&refused(missing).await, StoreErrorKind::Unavailable, "cannot be opened");
    let unmigrated = SqliteOptions::new(&path).migrate(false);
    check(&refused(unmigrated).await, StoreErrorKind::Schema, "migrate");
}

#[tokio::test]
async fn two_processes_may_create_the_same_file_at_once() {
    for _ in 0..5 {
        let (_directory, path) = place();
        let opens = (0..4).map(|_| {
            let path = path.clone();
            tokio::spawn(async move { open(&path).await })
        });
        for opened in opens.collect::<Vec<_>>() {
            opened.await.unwrap();
        }
    }
}
