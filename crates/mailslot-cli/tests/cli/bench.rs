//! `mailslot bench`: it measures, and leaves nothing behind, on SQLite and on PostgreSQL.

use crate::shop::Shop;
use mailslot_testkit::servers;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// So short that the figures mean nothing.
const SHORT: [&str; 7] = ["bench", "--time", "60ms", "--callers", "4", "--backlog", "300"];

/// What a run reports, in order.
const MEASURED: [&str; 5] = [
    "accept, 1 caller",
    "accept, 4 callers",
    "execute, 300 waiting, 64 handlers",
    "both at once, 4 callers, 64 handlers",
    "idle, 20 a second",
];

/// Checks that everything was measured.
#[track_caller]
fn check(measured: &Value) {
    let rows = measured.as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["what"].as_str().unwrap()).collect::<Vec<_>>(), MEASURED);
    for row in rows {
        assert!(row["per_second"].as_f64().unwrap() > 0.0, "{row}");
    }
    let has = |row: usize, figure: &str| rows[row][figure].as_f64().is_some_and(|ms| ms > 0.0);
    assert!(has(0, "accept_p50_ms") && has(3, "start_p99_ms") && has(4, "start_p50_ms"), "{measured}");
    assert!(rows[2]["start_p50_ms"].is_null(), "{measured}");
}

/// Runs a long measurement until it has begun, interrupts it, and gives its exit code.
fn interrupt(mut command: Command) -> Option<i32> {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(log.by_ref().any(|line| line.unwrap().contains("measuring accept")), "it never began");
    let killed = Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status().unwrap();
    assert!(killed.success());
    // What it still logs must find a reader.
    log.for_each(drop);
    child.wait().unwrap().code()
}

fn files(shop: &Shop) -> Vec<String> {
    let entries = std::fs::read_dir(shop.path("")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// How many schemas there are that a run may have left; other tests have none.
async fn schemas(url: &str) -> i64 {
    let mut db = PgConnection::connect(url).await.unwrap();
    let sql = "SELECT count(*) FROM pg_namespace WHERE starts_with(nspname, 'mailslot_bench_')";
    sqlx::query_scalar(sql).fetch_one(&mut db).await.unwrap()
}

/// A database of one test's own, so that no other measurement is seen in it.
async fn database(name: &'static str) -> String {
    let shared = servers::shared();
    let mut db = PgConnection::connect(&shared).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
        .execute(&mut db)
        .await
        .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut db).await.unwrap();
    let (server, _) = shared.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

#[test]
fn a_file_is_measured_beside_and_left_alone() {
    let shop = Shop::new();
    shop.accept_many(3);
    check(&shop.json(&SHORT));
    assert_eq!(shop.json(&["counts"])[0]["counts"]["pending"], 3);
    assert!(files(&shop).iter().all(|file| file.starts_with("mailslot.db")), "{:?}", files(&shop));
    let table = shop.run(&[&SHORT[..], &["latency", "--concurrency", "2"]].concat()).ok();
    assert!(table.out.starts_with("MEASURED") && table.out.contains("idle, 20 a second"), "{}", table.out);
    assert!(table.err.contains("beside the store's"), "{}", table.err);
}

#[test]
fn a_store_need_not_be_there_to_measure_beside_it_but_its_folder_must() {
    let shop = Shop::new();
    shop.json(&[&SHORT[..], &["accept"]].concat());
    assert_eq!(files(&shop), [""; 0]);
    shop.run(&["--store", "no/such/folder.db", "bench", "accept"]).fails(69, &["measure beside", "folder"]);
    let memory = shop.run(&[&["--store", "memory:"], &SHORT[..], &["accept"]].concat()).ok();
    assert!(memory.err.contains("in memory"), "{}", memory.err);
}

#[test]
fn an_interrupted_measurement_removes_its_files() {
    let shop = Shop::new();
    assert_eq!(interrupt(shop.command(&["-vv", "bench", "--time", "10m"])), Some(130));
    assert_eq!(files(&shop), [""; 0]);
}

#[tokio::test]
async fn a_database_is_measured_in_schemas_that_are_gone_afterwards() {
    let url = database("mailslot_cli_bench").await;
    let shop = Shop::with_store(format!("{url}?mailslot_schema=kept"));
    shop.accept_many(3);
    check(&shop.json(&SHORT));
    assert_eq!(schemas(&url).await, 0);
    assert_eq!(shop.json(&["counts"])[0]["counts"]["pending"], 3);
}

#[tokio::test]
async fn an_interrupted_measurement_drops_its_schema_and_a_killed_one_is_reported() {
    let url = database("mailslot_cli_bench_interrupted").await;
    let shop = Shop::with_store(url.clone());
    assert_eq!(interrupt(shop.command(&["-vv", "bench", "--time", "10m"])), Some(130));
    assert_eq!(schemas(&url).await, 0);
    let mut db = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("CREATE SCHEMA mailslot_bench_left").execute(&mut db).await.unwrap();
    let ran = shop.run(&[&SHORT[..], &["accept"]].concat()).ok();
    assert!(ran.err.contains("DROP SCHEMA mailslot_bench_left CASCADE"), "{}", ran.err);
    assert_eq!(schemas(&url).await, 1);
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let shop = Shop::with_store("postgres://u:secret@127.0.0.1:1/app".into());
    let ran = shop.run(&["-v", "bench", "accept"]);
    assert_eq!(ran.code, 69, "{ran:#?}");
    assert!(ran.err.contains("cannot connect") && !ran.err.contains("secret"), "{}", ran.err);
}
