//! Tables that change under statements that were prepared before.

use crate::rig::{Rig, by_hand, connect};
use mailslot_core::StoreErrorKind;
use sqlx::AssertSqlSafe;

/// Changes the type of a column that claims return, to one that no prepared statement may give.
macro_rules! change_type {
    ($type:literal) => {
        concat!(
            "DO $$ DECLARE body text := pg_get_viewdef('mailslot.record'); BEGIN DROP VIEW mailslot.record; \
             ALTER TABLE mailslot.message ALTER COLUMN content_type TYPE ",
            $type,
            "; EXECUTE 'CREATE VIEW mailslot.record AS ' || body; END $$"
        )
    };
}

#[tokio::test]
async fn a_column_more_or_less_changes_nothing() {
    let mut rig = Rig::start().await;
    let mut load = rig.working.load();
    for change in ["ADD COLUMN later text", "DROP COLUMN later"] {
        load.until_accepted(20).await;
        for table in ["message", "ready", "lease", "outcome"] {
            let mut db = connect(&rig.url()).await;
            let alter = AssertSqlSafe(format!("ALTER TABLE mailslot.{table} {change}"));
            sqlx::raw_sql(alter).execute(&mut db).await.unwrap();
        }
    }
    load.until_accepted(20).await;
    let progress = load.end().await;
    assert_eq!(progress.errors, []);
    rig.working.assert_nothing_is_lost(progress.accepted).await;
    assert_eq!(rig.log.count(&["WARN"]), 0, "{}", rig.log.text());
}

#[tokio::test]
async fn a_column_of_another_type_costs_a_connection_and_no_message() {
    let mut rig = Rig::start().await;
    let mut load = rig.working.load();
    for change in [change_type!("varchar"), change_type!("text COLLATE \"C\"")] {
        load.until_accepted(20).await;
        by_hand(&rig.url(), change).await;
    }
    load.until_accepted(20).await;
    let progress = load.end().await;
    assert!(progress.errors.iter().all(|kind| *kind == StoreErrorKind::Unavailable), "{progress:?}");
    rig.working.assert_nothing_is_lost(progress.accepted).await;
    assert!(rig.log.count(&["the schema changed under a prepared statement"]) > 0, "{}", rig.log.text());
}
