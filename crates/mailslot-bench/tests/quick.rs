//! The binary's quick mode: it runs to its end, and its report is whole.

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

fn name(row: &Value) -> String {
    let text = |field: &str| row[field].as_str().expect("a row has its names");
    let (suite, case) = (text("suite"), text("case"));
    let case = if suite == "latency" { case.split(',').next().unwrap_or(case) } else { case };
    format!("{suite} / {case}")
}

#[test]
fn a_quick_run_reports_every_row_with_finite_ratios() {
    let dir = tempfile::tempdir().unwrap();
    let (json, svg) = (dir.path().join("report.json"), dir.path().join("report.svg"));
    let output = Command::new(env!("CARGO_BIN_EXE_mailslot-bench"))
        .args(["--quick", "--store", "memory", "--json"])
        .arg(&json)
        .arg("--svg")
        .arg(&svg)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(name).collect::<BTreeSet<_>>(), ROWS.map(String::from).into());
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
    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(svg.contains("<svg") && svg.contains("both / memory / 256 callers, one worker"));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("execute / memory / drain, no-op, concurrency 16"), "{table}");
}
