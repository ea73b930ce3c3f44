//! Which store: missing, unusable, of someone else, of a newer version.

use crate::shop::Shop;
use sqlx::{Connection as _, SqliteConnection};
use std::os::unix::fs::PermissionsExt as _;

/// Runs SQL on a file behind the back of the program.
pub(crate) fn sql(shop: &Shop, file: &str, statement: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("sqlite://{}?mode=rwc", shop.path(file).display());
    runtime.block_on(async {
        let mut db = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn who_only_looks_makes_no_store() {
    let shop = Shop::new();
    for looks in [&["counts"][..], &["messages", "list"], &["doctor"], &["leases"], &["redrive", "list"]] {
        shop.run(looks).fails(66, &["mailslot.db", "--store", "MAILSLOT_STORE", "migrate"]);
    }
    assert!(!shop.path("mailslot.db").exists());
    assert!(shop.run(&["migrate"]).ok().err.contains("made a new store"));
    assert_eq!(shop.json(&["migrate"])["found"], 1);
    shop.ok(&["counts"]);
}

#[test]
fn the_store_is_named_by_flag_or_environment() {
    let shop = Shop::new();
    shop.ok(&["--store", "sqlite:a.db", "migrate"]);
    shop.ok(&["migrate", "--store", "b.db"]);
    let mut command = shop.command(&["migrate"]);
    command.env("MAILSLOT_STORE", "c.db");
    assert!(command.status().unwrap().success());
    assert!(["a.db", "b.db", "c.db"].iter().all(|file| shop.path(file).exists()));
    assert!(!shop.path("mailslot.db").exists());
    shop.run(&["--store", "mysql://host/db", "counts"]).fails(65, &["--store", "sqlite:path", "postgres://"]);
    shop.run(&["--store", "", "migrate"]).fails(65, &["names no file"]);
}

#[test]
fn a_store_that_cannot_be_opened_is_unavailable() {
    let shop = Shop::new();
    shop.run(&["--store", "no/such/folder.db", "migrate"]).fails(69, &["directory exists"]);
    shop.ok(&["migrate"]);
    std::fs::create_dir(shop.path("folder")).unwrap();
    shop.run(&["--store", "folder", "counts"]).fails(69, &["cannot be opened"]);
    // The superuser may write everywhere.
    let read_only = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(shop.path("mailslot.db"), read_only).unwrap();
    if std::fs::File::options().append(true).open(shop.path("mailslot.db")).is_err() {
        shop.run(&["counts"]).fails(69, &["read-only"]);
    }
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let shop = Shop::new();
    sql(&shop, "other.db", "CREATE TABLE things (id INTEGER)");
    let before = std::fs::read(shop.path("other.db")).unwrap();
    for command in ["migrate", "counts", "doctor"] {
        shop.run(&["--store", "other.db", command]).fails(78, &["another program", "check the path"]);
    }
    assert_eq!(std::fs::read(shop.path("other.db")).unwrap(), before);
    shop.write("text.db", "this is no database, and long enough to be read as one by mistake");
    shop.run(&["--store", "text.db", "counts"]).fails(78, &["not a SQLite database"]);
}

#[test]
fn a_newer_schema_is_refused() {
    let shop = Shop::new();
    shop.ok(&["migrate"]);
    sql(&shop, "mailslot.db", "INSERT INTO mailslot_schema VALUES (99, '0099_from_the_future', 0)");
    let accept = ["accept", "--contract", "a@1"];
    shop.run_with(&accept, "1").fails(78, &["schema version 99", "newer", "upgrade"]);
    shop.run(&["work", "--drain", "--route", "*=exec:true"]).fails(78, &["schema version 99"]);
}

#[test]
fn a_store_that_another_program_holds_is_to_be_tried_again() {
    let shop = Shop::new();
    shop.ok(&["migrate"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("sqlite://{}", shop.path("mailslot.db").display());
    runtime.block_on(async {
        let mut db = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut db).await.unwrap();
        shop.run_with(&["accept", "--contract", "a@1"], "1")
            .fails(75, &["another writer", "transaction open"]);
    });
}

#[test]
fn the_causes_of_an_error_are_shown_when_asked() {
    let shop = Shop::new();
    let ran = shop.run(&["-v", "--store", "no/such/folder.db", "migrate"]);
    assert_eq!(ran.code, 69);
    assert!(ran.err.contains("caused by: "), "{}", ran.err);
}
