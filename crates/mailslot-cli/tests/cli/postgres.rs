//! The same program on PostgreSQL, each case in a schema of its own.

use crate::messages::check_list;
use crate::shop::Shop;
use mailslot_testkit::servers;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// A shop with a store of its own on the shared server, and the name of its schema.
fn shop() -> (Shop, String) {
    shop_at(&servers::shared())
}

fn shop_at(url: &str) -> (Shop, String) {
    let schema = servers::fresh_schema();
    (Shop::with_store(format!("{url}?mailslot_schema={schema}")), schema)
}

/// Runs SQL behind the back of the program; gives the first value of the answer.
fn sql(statement: String) -> Option<i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut db = PgConnection::connect(&servers::shared()).await.unwrap();
        let rows = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_all(&mut db).await.unwrap();
        rows.first().map(|row| sqlx::Row::get(row, 0))
    })
}

fn exists(schema: &str) -> bool {
    sql(format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'")) == Some(1)
}

/// The way of a message from a new schema to a clean bill of health.
#[test]
fn smoke() {
    let (shop, _) = shop();
    assert_eq!(shop.ok(&["migrate"]), "the postgres store has schema 1, and this program wants 1\n");
    let id = shop.accept("orders.placed@1", &["--key", "order-7"], "{\"total\":1}");
    assert_eq!(shop.accept("orders.placed@1", &["--key", "order-7"], "{\"total\":1}"), id);
    assert_eq!(shop.drain("cat > got", &[])["completed"], 1);
    assert_eq!(shop.read("got"), "{\"total\":1}");
    assert_eq!(shop.show(&id)["status"], "completed");
    assert_eq!(shop.json(&["counts"])[0]["counts"], json!({"completed": 1}));
}

#[test]
fn doctor_says_how_accepts_elsewhere_are_noticed() {
    let (direct, _) = shop();
    direct.ok(&["migrate"]);
    let health = direct.ok(&["doctor"]);
    assert!(health.contains("\nwake-ups: listening\n") && health.contains("partitions"), "{health}");
    assert!(!health.contains("violated") && !health.contains("file_intact"), "{health}");
    assert_eq!(direct.json(&["doctor"])["wakeups"], "listening");
    let (pooled, _) = shop_at(&servers::pgbouncer());
    pooled.ok(&["migrate"]);
    let health = pooled.ok(&["doctor"]);
    assert!(health.contains("\nwake-ups: polling, because there is a pooler"), "{health}");
    assert_eq!(pooled.json(&["doctor"])["wakeups"], "polling_behind_pooler");
}

#[test]
fn messages_are_listed_shown_and_explained() {
    let (shop, _) = shop();
    let later = shop.accept("a@1", &["--due-in", "1h", "--tenant", "acme"], "1");
    let dead = shop.dead_letter("b@1", &[]);
    check_list(&shop, &[], &[&later, &dead]);
    check_list(&shop, &["--status", "dead_lettered"], &[&dead]);
    check_list(&shop, &["--tenant", "acme"], &[&later]);
    assert_eq!(shop.show(&later)["tenant"], "acme");
    let why = shop.show(&later)["why"].as_str().unwrap().to_owned();
    assert!(why.starts_with("not due until"), "{why}");
    assert_eq!(shop.show(&dead)["history"].as_array().unwrap().len(), 1);
}

#[test]
fn dead_letters_are_redriven() {
    let (shop, _) = shop();
    shop.accept_many(3);
    shop.drain("exit 65", &[]);
    let redrive = shop.json(&["redrive", "start", "--rate", "1000", "--follow", "--drive"]);
    assert_eq!((&redrive["state"], &redrive["requeued"]), (&json!("done"), &json!(3)));
    assert_eq!(shop.drain("true", &[])["completed"], 3);
    assert_eq!(shop.json(&["counts"])[0]["counts"], json!({"completed": 3}));
}

#[test]
fn who_only_looks_makes_no_schema() {
    let (shop, schema) = shop();
    for looks in [&["counts"][..], &["messages", "list"], &["doctor"], &["redrive", "list"]] {
        shop.run(looks).fails(78, &[&schema, "mailslot migrate"]);
    }
    assert!(!exists(&schema));
}

#[test]
fn the_schema_can_be_printed_and_applied_by_hand() {
    let (shop, schema) = shop();
    let script = shop.ok(&["migrate", "--print"]);
    assert!(!exists(&schema), "nothing is opened");
    assert!(script.contains(&format!("CREATE SCHEMA {schema};")) && !script.contains(" mailslot."));
    sql(script);
    // A command that may not migrate opens it, so it is what this program wants, down to the last column.
    assert_eq!(shop.json(&["counts"]), json!([]));
    assert_eq!(shop.json(&["doctor"])["ok"], true);
    assert_eq!(shop.json(&["migrate"])["found"], 1);
}

#[test]
fn a_schema_of_another_program_is_refused_and_left_alone() {
    let (shop, schema) = shop();
    sql(format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.things (id integer)"));
    for command in ["migrate", "counts"] {
        shop.run(&[command]).fails(78, &[&schema, "another program"]);
    }
    assert_eq!(sql(format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'")), Some(1));
}

#[test]
fn a_broken_invariant_is_found_named_and_mended() {
    let (shop, schema) = shop();
    shop.accept("a@1", &[], "1");
    sql(format!("UPDATE {schema}.tally SET messages = 7"));
    shop.run(&["doctor"]).fails(1, &["violation", "doctor --repair"]);
    assert_eq!(shop.json(&["doctor", "--repair"])["repaired"][0]["invariant"], "counts");
    shop.ok(&["doctor"]);
}

#[test]
fn a_password_in_the_url_is_shown_nowhere() {
    let check = |url: &str, code| {
        let ran = Shop::with_store(url.into()).run(&["-vvv", "counts"]).fails(code, &[]);
        assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
    };
    check("postgres://u:s3cret@127.0.0.1:port/db", 65);
    check("postgres://u:s3cret@127.0.0.1/db?mailslot_schema=No", 65);
    // Nothing listens on the first port.
    check("postgres://u:s3cret@127.0.0.1:1/db", 69);
    let help = Shop::with_store("postgres://u:s3cret@host/db".into()).ok(&["--help"]);
    assert!(help.contains("MAILSLOT_STORE") && !help.contains("s3cret"), "{help}");
}
