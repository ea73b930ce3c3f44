//! A schema that was changed by hand is refused with what is different, and left as it is.

use crate::support::{Place, refused};
use mailslot_core::StoreErrorKind;

#[tokio::test]
async fn a_change_by_hand_is_refused_with_a_difference() {
    for (change, line) in [
        ("ALTER TABLE mailslot.ready ADD COLUMN note text", "+ column ready.note text"),
        ("ALTER TABLE mailslot.ledger DROP COLUMN kind", "- column ledger.kind smallint not null"),
        ("DROP INDEX mailslot.message_id", "- index CREATE INDEX message_id"),
        (
            "ALTER TABLE mailslot.lease ALTER COLUMN label DROP NOT NULL",
            "- column lease.label text not null collate C",
        ),
        ("ALTER TABLE mailslot.parked DROP CONSTRAINT parked_seq_key", "- constraint parked UNIQUE (seq)"),
        ("CREATE TABLE mailslot.extra (a integer)", "+ column extra.a integer"),
    ] {
        let place = Place::new();
        drop(place.open().await.expect("a fresh schema can be made"));
        place.run(change).await;
        let text = refused(place.open().await, StoreErrorKind::Schema);
        assert!(text.contains(line), "{change}: {text}");
        assert!(refused(place.open().await, StoreErrorKind::Schema).contains(line), "it was altered");
    }
}

#[tokio::test]
async fn a_schema_with_the_tables_of_others_is_refused() {
    let place = Place::new();
    place.run(&format!("CREATE SCHEMA {}; CREATE TABLE mailslot.theirs (a integer)", place.schema)).await;
    let text = refused(place.open().await, StoreErrorKind::Schema);
    assert!(text.contains("another program") && text.contains("mailslot_schema"), "{text}");
}

#[tokio::test]
async fn a_missing_schema_is_not_made_unasked() {
    let place = Place::new();
    let text = refused(
        mailslot_store_postgres::PostgresStore::open(place.options().migrate(false)).await,
        StoreErrorKind::Schema,
    );
    assert!(text.contains("mailslot migrate"), "{text}");
}
