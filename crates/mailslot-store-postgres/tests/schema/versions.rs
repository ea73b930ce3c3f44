//! Programs of two versions on one schema, and many programs that make it at once.

use crate::support::{Place, accept, message, refused};
use mailslot_core::StoreErrorKind;
use mailslot_store_postgres::schema_sql;
use mailslot_testkit::servers;
use sqlx::{Executor as _, Row as _};

/// What the version after this one could look like: it expands what is there.
const NEXT: &str = "ALTER TABLE mailslot.message ADD COLUMN region text;
    ALTER TABLE mailslot.ready ADD COLUMN region text;
    CREATE TABLE mailslot.region (name text PRIMARY KEY);";

#[tokio::test]
async fn an_older_program_goes_on_beside_a_newer_schema_that_it_can_share() {
    let place = Place::new();
    let older = place.open().await.expect("a fresh schema can be made");
    accept(&older, message()).await.expect("it accepts");
    place.run(NEXT).await;
    place.run("INSERT INTO mailslot.migration VALUES (2, '0002_add_region', 1, 0)").await;
    // The one that runs, with statements prepared before, and one that starts now.
    accept(&older, message()).await.expect("the running program goes on");
    let started = place.open().await.expect("the older program starts on the newer schema");
    accept(&started, message()).await.expect("it accepts");
}

#[tokio::test]
async fn a_newer_schema_that_an_older_program_cannot_share_is_refused() {
    let place = Place::new();
    drop(place.open().await.expect("a fresh schema can be made"));
    place.run("INSERT INTO mailslot.migration VALUES (3, '0003_contract', 2, 0)").await;
    let text = refused(place.open().await, StoreErrorKind::Schema);
    assert!(text.contains("newer") && text.contains("upgrade"), "{text}");
}

#[tokio::test]
async fn many_programs_make_a_schema_together() {
    let place = Place::new();
    let opened: Vec<_> =
        (0..6).map(|_| tokio::spawn(mailslot_store_postgres::PostgresStore::open(place.options()))).collect();
    for opened in opened {
        let store = opened.await.expect("no task panics").expect("each opens it");
        accept(&store, message()).await.expect("each accepts");
    }
}

#[tokio::test]
async fn the_printed_schema_is_the_one_that_is_wanted() {
    for url in [servers::shared(), servers::newest()] {
        let place = Place { url, schema: servers::fresh_schema() };
        let script = schema_sql().replace("SCHEMA mailslot;", &format!("SCHEMA {};", place.schema));
        place.run(&script).await;
        let store = mailslot_store_postgres::PostgresStore::open(place.options().migrate(false)).await;
        accept(&store.expect("it is what is wanted"), message()).await.expect("it accepts");
    }
}

#[tokio::test]
async fn partitions_are_there_ahead_and_a_missing_one_is_made_when_it_is_needed() {
    let place = Place::new();
    let store = place.open().await.expect("a fresh schema can be made");
    // As if numbers had run on while nobody who may make partitions was there.
    place.run("SELECT setval('mailslot.message_seq', 50000000000)").await;
    let appended = accept(&store, message()).await.expect("the partition is made");
    assert!(appended.receipt().is_some());
    let mut db =
        <sqlx::PgConnection as sqlx::Connection>::connect(&place.url).await.expect("it can be reached");
    let count = format!("SELECT count(*) FROM {}.partition WHERE upper > 50000000001", place.schema);
    let row = db.fetch_one(sqlx::raw_sql(sqlx::AssertSqlSafe(count))).await.expect("it can be read");
    assert!(row.get::<i64, _>(0) > 0);
}
