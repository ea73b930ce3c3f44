//! `mailslot accept --ndjson`.

use crate::shop::{Ran, Shop};
use serde_json::Value;
use std::fmt::Write as _;

const ACCEPT: [&str; 3] = ["--json", "accept", "--ndjson"];

fn run(shop: &Shop, flags: &[&str], lines: &[&str]) -> Ran {
    shop.run_with(&[&ACCEPT[..], flags].concat(), lines.join("\n"))
}

fn pending(shop: &Shop) -> u64 {
    let counts = shop.json(&["counts"]);
    counts.as_array().unwrap().iter().filter_map(|lane| lane["counts"]["pending"].as_u64()).sum()
}

#[test]
fn receipts_come_in_the_order_of_the_lines() {
    let shop = Shop::new();
    let mut lines = String::new();
    for n in 1..=3_000 {
        writeln!(lines, r#"{{"contract":"n@1","payload":{n},"correlation":"c{n}"}}"#).unwrap();
    }
    let receipts = shop.run_with(&ACCEPT, lines).ok().lines();
    assert_eq!(receipts.len(), 3_000);
    for (receipt, n) in receipts.iter().zip(1..) {
        assert_eq!(receipt["line"], n);
        assert_eq!(receipt["trace"]["correlation"], format!("c{n}"));
    }
    assert_eq!(pending(&shop), 3_000);
}

#[test]
fn flags_are_defaults_and_lines_win() {
    let shop = Shop::new();
    let flags = ["--contract", "a@1", "--tenant", "acme", "--header", "x=1", "--header", "y=1"];
    let lines = [
        r#"{"payload": {"n": 1.10} }"#,
        "",
        r#"{"payload":null,"contract":"b@2","tenant":"other","priority":"low","due_in":"1h","headers":{"y":"2"}}"#,
        r#"{"payload":"plain text","content_type":"text/plain","due_at":"2000-01-01T00:00:00Z"}"#,
    ];
    let receipts = run(&shop, &flags, &lines).ok().lines();
    let numbers: Vec<_> = receipts.iter().map(|receipt| receipt["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 4]);
    let message =
        |index: usize| shop.json(&["messages", "show", receipts[index]["id"].as_str().unwrap(), "--payload"]);
    let (first, second, third) = (message(0), message(1), message(2));
    assert_eq!(first["payload"], r#"{"n": 1.10}"#);
    assert_eq!((&first["tenant"], &second["tenant"]), (&"acme".into(), &"other".into()));
    assert_eq!(second["headers"], serde_json::json!({"x": "1", "y": "2"}));
    assert_eq!((&second["payload"], &second["priority"]), (&"null".into(), &"low".into()));
    assert_eq!(third["payload"], "plain text");
}

#[test]
fn a_bad_line_names_its_number_its_field_and_the_fix() {
    let check = |line: &str, words: &[&str]| {
        let shop = Shop::new();
        let good = r#"{"contract":"a@1","payload":1}"#;
        let ran = run(&shop, &[], &[good, line, good])
            .fails(65, words)
            .fails(65, &["line 2", "1 message accepted"]);
        assert_eq!(ran.lines().len(), 1, "{line}");
        assert!(!ran.err.contains("SECRET"), "{}", ran.err);
        assert_eq!(pending(&shop), 1, "{line}");
    };
    check("{", &["not JSON", "one object on each line"]);
    check("[1]", &["no JSON object"]);
    check(r#"{"payload":1}"#, &["`contract` is missing"]);
    check(r#"{"contract":"a@1"}"#, &["`payload` is missing"]);
    check(r#"{"contract":"a@1","payload":1,"tennant":"SECRET"}"#, &["unknown field `tennant`", "tenant"]);
    check(r#"{"contract":"a@1","payload":1,"payload":2}"#, &["`payload` twice"]);
    check(r#"{"contract":"a@1","payload":1,"key":7}"#, &["`key` has the wrong type", "a string"]);
    check(r#"{"contract":"a@1","payload":1,"key":" "}"#, &["`key` is blank"]);
    check(r#"{"contract":"a@1","payload":1,"session":"SECRET\u0000"}"#, &["`session`", "control character"]);
    check(r#"{"contract":"a@1","payload":1,"priority":"SECRET"}"#, &["`priority`", "\"high\""]);
    check(r#"{"contract":"a@1","payload":1,"due_in":"-1m"}"#, &["`due_in` is negative"]);
    check(
        r#"{"contract":"a@1","payload":1,"due_in":"1m","due_at":"2030-01-01T00:00:00Z"}"#,
        &["`due_at`", "`due_in`"],
    );
    check(r#"{"contract":"a@1","payload":1,"due_at":"SECRET"}"#, &["`due_at` is no instant"]);
    check(r#"{"contract":"a@1","payload":1,"id":"SECRET"}"#, &["`id` is not a UUID"]);
    check(r#"{"contract":"a@1","payload":1,"headers":{"SECRET":1}}"#, &["`headers`", "object of strings"]);
    check(r#"{"contract":"a@1","payload":1,"traceparent":"SECRET"}"#, &["`traceparent` is not W3C"]);
    check(r#"{"contract":"a@1","payload":1,"tracestate":"a=1"}"#, &["`tracestate` stands alone"]);
    check(r#"{"contract":"a@1","payload":1,"content_type":"text/plain"}"#, &["`payload`", "a string"]);
}

#[test]
fn a_run_that_stopped_can_be_repeated_with_keys() {
    let shop = Shop::new();
    let line = |n: u32| format!(r#"{{"contract":"a@1","payload":{n},"key":"k{n}"}}"#);
    let (one, two) = (line(1), line(2));
    run(&shop, &[], &[&one, "oops", &two]).fails(65, &["line 2", "running it again is safe"]);
    let receipts = run(&shop, &[], &[&one, &two]).ok().lines();
    assert_eq!(receipts[0]["outcome"]["kind"], "already_accepted");
    assert_eq!(receipts[1]["outcome"]["kind"], "accepted");
}

#[test]
fn a_conflict_stops_with_73_or_is_counted() {
    let shop = Shop::new();
    shop.accept("a@1", &["--key", "k"], "1");
    let conflict = r#"{"contract":"a@1","payload":2,"key":"k"}"#;
    run(&shop, &[], &[conflict]).fails(73, &["line 1", "`key` was used before", "0 messages accepted"]);
    let good = r#"{"contract":"a@1","payload":3}"#;
    let ran = run(&shop, &["--keep-going"], &[conflict, "oops", good])
        .fails(65, &["2 lines refused", "1 message accepted"]);
    let codes: Vec<_> = ran.lines().iter().map(|line| line["exit_code"].as_u64()).collect();
    assert_eq!(codes, [Some(73), Some(65), None]);
    // People read the same on standard error.
    let ran = shop.run_with(&["accept", "--ndjson", "--keep-going"], format!("oops\n{good}"));
    assert_eq!(ran.code, 65);
    assert!(ran.err.contains("error: line 1: "), "{}", ran.err);
}

#[test]
fn a_batch_of_lines_is_all_or_nothing() {
    let shop = Shop::new();
    let good = r#"{"contract":"a@1","payload":1}"#;
    let bad = r#"{"contract":"a@1","payload":1,"key":""}"#;
    run(&shop, &["--batch"], &[good, bad]).fails(65, &["line 2", "`key` is blank", "no message was stored"]);
    shop.accept("b@1", &["--key", "k"], "1");
    let conflict = r#"{"contract":"b@1","payload":2,"key":"k"}"#;
    run(&shop, &["--batch"], &[good, "", conflict]).fails(73, &["line 3", "no message was stored"]);
    assert_eq!(pending(&shop), 1);
    assert_eq!(run(&shop, &["--batch"], &[good, good]).ok().lines().len(), 2);
    assert_eq!(pending(&shop), 3);
    let many = vec![good; 10_001];
    run(&shop, &["--batch"], &many).fails(65, &["more than 10000", "leave --batch out"]);
}

#[test]
fn several_files_and_windows_line_ends_are_read() {
    let shop = Shop::new();
    let good = r#"{"contract":"a@1","payload":1}"#;
    shop.write("a", format!("\u{feff}{good}\r\n\r\n{good}\r\n"));
    shop.write("b", good);
    let receipts = shop.run(&[&ACCEPT[..], &["a", "b"]].concat()).ok().lines();
    let lines: Vec<_> = receipts.iter().map(|receipt: &Value| receipt["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 3, 1]);
    shop.write("b", "oops");
    shop.run(&[&ACCEPT[..], &["a", "b"]].concat()).fails(65, &["b, line 1"]);
    shop.run(&[&ACCEPT[..], &["missing"]].concat()).fails(66, &["missing"]);
    shop.run_with(&[&ACCEPT[..], &["-"]].concat(), good).ok();
}
