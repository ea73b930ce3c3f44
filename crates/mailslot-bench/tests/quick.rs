//! The binary's quick mode: it runs to its end, and its report is whole.

#![expect(clippy::unwrap_used, reason = "this is a test, helpers included")]

use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Every row of a run on memory, as `suite / case`; a case that names a measured rate is cut before it.
const ROWS: [&str; 18] = [
    "accept / 1 callers, keyed",
    "accept / 16 callers, keyed",
    "accept / 256 callers, keyed",
    "accept / 1 callers, no key",
    "accept / 16 callers, no key",
    "accept / 256 callers, no key",
    "accept / batch of 100, keyed",
    "accept / batch of 1000, keyed",
    "store / append 1, keyed",
    "store / append 256, keyed",
    "store / settle and lease 200",
    "execute / drain, no-op, concurrency 16",
    "execute / drain, no-op, concurrency 64",
    "execute / drain, 1 ms handlers, concurrency 64",
    "latency / idle",
    "latency / half load",
    "both / 64 callers, one worker",
    "both / 256 callers, one worker",
];

/// Every row of a thorough run on PostgreSQL, likewise.
const SERVER_ROWS: [&str; 45] = [
    "accept / 1 callers, keyed",
    "accept / 16 callers, keyed",
    "accept / 32 callers, keyed",
    "accept / 64 callers, keyed",
    "accept / 256 callers, keyed",
    "accept / 1024 callers, keyed",
    "accept / 1 callers, no key",
    "accept / 16 callers, no key",
    "accept / 64 callers, no key",
    "accept / 256 callers, no key",
    "accept / 1024 callers, no key",
    "accept / batch of 100, keyed",
    "accept / batch of 1000, keyed",
    "transaction / 1 callers, keyed",
    "transaction / 16 callers, keyed",
    "transaction / 64 callers, keyed",
    "store / append 1, keyed",
    "store / append 256, keyed",
    "store / settle and lease 200",
    "execute / drain, no-op, concurrency 1",
    "execute / drain, no-op, concurrency 4",
    "execute / drain, no-op, concurrency 16",
    "execute / drain, no-op, concurrency 64",
    "execute / drain, no-op, concurrency 256",
    "execute / drain, 1 ms handlers, concurrency 1",
    "execute / drain, 1 ms handlers, concurrency 4",
    "execute / drain, 1 ms handlers, concurrency 16",
    "execute / drain, 1 ms handlers, concurrency 64",
    "execute / drain, 1 ms handlers, concurrency 256",
    "processes / drain, no-op, concurrency 64",
    "latency / idle",
    "latency / half load",
    "latency / idle, two processes",
    "latency / half load, two processes",
    "both / 16 callers, one worker",
    "both / 64 callers, one worker",
    "both / 256 callers, one worker",
    "both / 256 callers, one worker, old snapshot held",
    "both / 1024 callers, one worker",
    "both / 1024 callers, one worker, old snapshot held",
    "both / 64 callers, one worker, no key",
    "snapshot / settle and lease 200 while 3000 pass",
    "backlog / settle and lease 200, 3000 due",
    "backlog / settle and lease 200, 3000 due in a year",
    "retained / 256 callers, one worker, 3000 completed",
];

/// The name of a row; that of a latency without its rate, which is measured.
fn name(row: &Value) -> String {
    let text = |field: &str| row[field].as_str().expect("a row has its names");
    let (suite, case) = (text("suite"), text("case"));
    let measured = |part: &&str| suite == "latency" && part.ends_with("/s");
    let parts: Vec<_> = case.split(", ").filter(|part| !measured(part)).collect();
    format!("{suite} / {}", parts.join(", "))
}

/// What a quick run wrote.
struct Ran {
    report: Value,
    svg: String,
    table: String,
}

fn run(arguments: &[&str], hide: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let (json, svg) = (dir.path().join("report.json"), dir.path().join("report.svg"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_mailslot-bench"));
    command.arg("--quick").args(arguments).arg("--json").arg(&json).arg("--svg").arg(&svg);
    for variable in hide {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ran {
        report: serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap(),
        svg: std::fs::read_to_string(&svg).unwrap(),
        table: String::from_utf8(output.stdout).unwrap(),
    }
}

/// Checks that a report has these rows, ours first, each with a reference and finite figures.
fn check_rows(report: &Value, expected: &[&str]) {
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(name).collect::<BTreeSet<_>>(),
        expected.iter().map(ToString::to_string).collect()
    );
    for row in rows {
        let measured = row["measured"].as_array().unwrap();
        assert_eq!(measured[0]["kind"], "mailslot", "{row}");
        assert!(measured.len() > 1, "{row}");
        for measured in measured {
            // JSON has no form for what is not finite: it would be null.
            assert!(measured["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{row}");
            assert!(measured["per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
        }
    }
}

#[test]
fn a_quick_run_reports_every_row_with_finite_ratios() {
    let Ran { report, svg, table } = run(&["--store", "memory"], &["MAILSLOT_BENCH_POSTGRES"]);
    check_rows(&report, &ROWS);
    assert!(svg.contains("<svg") && svg.contains("both / memory / 256 callers, one worker"));
    assert!(table.contains("execute / memory / drain, no-op, concurrency 16"), "{table}");
}

#[test]
fn a_quick_run_on_postgres_reports_every_row_with_what_the_server_paid() {
    let url = mailslot_servers::environment::shared();
    let suites = [
        "accept",
        "transaction",
        "store",
        "execute",
        "processes",
        "latency",
        "both",
        "snapshot",
        "backlog",
        "retained",
    ];
    let flags = ["--thorough", "--store", "postgres", "--postgres", &url];
    let Ran { report, table, .. } = run(&[&suites[..], &flags[..]].concat(), &[]);
    check_rows(&report, &SERVER_ROWS);
    assert!(report["server"]["version"].is_string(), "{report}");
    for row in report["rows"].as_array().unwrap().iter().filter(|row| row["suite"] == "both") {
        for measured in row["measured"].as_array().unwrap() {
            assert!(measured["wal_bytes"].as_f64().is_some_and(|bytes| bytes > 100.0), "{row}");
            assert!(measured["accept_p50_ms"].is_f64() && measured["p99_ms"].is_f64(), "{row}");
        }
    }
    assert!(table.contains("execute, no-op: rate over raw"), "{table}");
    assert!(!table.contains(&url) && !report.to_string().contains(&url), "the URL may hold a password");
}

#[test]
fn other_queues_run_in_turn_with_ours() {
    use std::os::unix::fs::PermissionsExt as _;
    let url = mailslot_servers::environment::shared();
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("peers");
    let script = r#"#!/bin/sh
case "$1" in
list) echo '[{"name": "pgmq", "version": "1.2.3", "settings": "as documented"}]' ;;
*) test -n "$MAILSLOT_BENCH_POSTGRES" && echo "$@" >> "$0.calls" && echo '{"messages": 10, "per_second": 5.0}' ;;
esac"#;
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let flags =
        ["accept", "execute", "--store", "postgres", "--case", "2 callers, keyed", "--postgres", &url];
    let Ran { report, table, .. } = run(&[&flags[..], &["--peers", program.to_str().unwrap()]].concat(), &[]);
    let measured = report["rows"][0]["measured"].as_array().unwrap();
    let peer = measured.iter().find(|measured| measured["kind"] == "peer").unwrap();
    assert_eq!((&peer["variant"], &peer["per_second"]), (&"pgmq".into(), &5.0.into()));
    assert!(peer["ratio"].as_f64().unwrap() > 1.0, "{peer}");
    let calls = std::fs::read_to_string(dir.path().join("peers.calls")).unwrap();
    assert_eq!(calls, "enqueue pgmq --callers 32 --seconds=0.2\n");
    assert!(table.contains("pgmq 1.2.3: as documented") && table.contains("rate over pgmq"), "{table}");
}
