//! Every input that is refused: the line names the flag and the fix, and never the value.

use crate::shop::Shop;

#[track_caller]
fn refused(flags: &[&str], words: &[&str]) {
    let shop = Shop::new();
    let accept = [&["accept"], flags].concat();
    let ran = shop.run_with(&accept, "1").fails(65, words);
    assert_eq!(ran.out, "");
    assert!(!ran.err.contains("SECRET"), "{}", ran.err);
}

#[test]
fn names_must_be_visible_and_short() {
    let long = "SECRET".repeat(100);
    for flag in ["--key", "--tenant", "--session", "--correlation"] {
        refused(&["--contract", "a@1", flag, " "], &[flag, "is blank", "leave the field out"]);
        refused(&["--contract", "a@1", flag, &long], &[flag, "UTF-16 units", "shorten it to 512"]);
        refused(&["--contract", "a@1", flag, "SECRET\tx"], &[flag, "control character"]);
    }
    refused(&["--contract", "a@1", "--endpoint", ""], &["--endpoint", "is blank"]);
    refused(&["--contract", "a@1", "--endpoint", &long], &["--endpoint", "shorten it to 260"]);
    refused(&["--contract", " "], &["--contract", "is blank"]);
    refused(&["--contract", &long], &["--contract", "shorten it to 260"]);
    refused(&["--contract", "a@x"], &["--contract", "name@1"]);
    refused(&["--contract", "a@0"], &["--contract", "count versions from 1"]);
    refused(&["--contract", "a@1", "--causation", "c"], &["--causation", "stands alone"]);
    refused(&["--contract", "a@1", "--id", "SECRET"], &["message id", "not a UUID"]);
    refused(&["--contract", "a@1", "--content-type", ""], &["--content-type", "application/json"]);
    refused(&["--contract", "a@1", "--header", "h=a\nSECRET"], &["--header", "control character"]);
}

#[test]
fn a_trace_must_be_w3c() {
    let flags = |trace| ["--contract", "a@1", "--traceparent", trace];
    refused(&flags("SECRET"), &["--traceparent", "not W3C", "00-<32 hex digits>"]);
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let state = ["--tracestate", "SECRET"];
    refused(&[&flags(good)[..], &state].concat(), &["--tracestate", "key=value pairs"]);
}

#[test]
fn a_delay_is_not_negative_and_not_ten_years() {
    refused(&["--contract", "a@1", "--due-in", "-5m"], &["--due-in", "is negative", "use zero"]);
    refused(&["--contract", "a@1", "--due-in=-5m"], &["--due-in", "is negative"]);
    refused(&["--contract", "a@1", "--due-in", "3651d"], &["--due-in", "ten years", "unit"]);
}

#[test]
fn a_payload_has_a_bound() {
    let shop = Shop::new();
    shop.write("large", vec![b'1'; 4 * 1024 * 1024 + 1]);
    let accept = ["accept", "--contract", "a@1", "large"];
    shop.run(&accept).fails(65, &["the payload", "send at most 4194304", "store larger content elsewhere"]);
    shop.write("large", vec![b'1'; 4 * 1024 * 1024]);
    shop.run(&accept).ok();
}

#[test]
fn what_the_command_line_cannot_mean_is_a_usage_error() {
    let shop = Shop::new();
    let usage = |arguments: &[&str], word: &str| {
        let ran = shop.run_with(arguments, "1");
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.err.contains(word), "{}", ran.err);
        assert_eq!(ran.out, "");
    };
    usage(&["accept"], "--contract is missing");
    usage(&["accept", "--contract", "a@1", "--due-in", "soon"], "write it as 500ms, 10s");
    usage(&["accept", "--contract", "a@1", "--due-in", "1mo"], "no fixed length");
    usage(&["accept", "--contract", "a@1", "--due-at", "noon"], "2026-01-31T12:00:00Z");
    usage(
        &["accept", "--contract", "a@1", "--due-at", "2030-01-01T00:00:00Z", "--due-in", "1m"],
        "cannot be used",
    );
    usage(&["accept", "--contract", "a@1", "--header", "h"], "name=value");
    usage(&["accept", "--contract", "a@1", "--priority", "urgent"], "high, normal, low");
    usage(&["accept", "--contract", "a@1", "--tracestate", "a=1"], "--traceparent");
    usage(&["work"], "--route");
    usage(&["work", "--route", "a:b"], "GLOB=exec:COMMAND");
    usage(&["work", "--route", "a=exec:b", "--retry", "often"], "exponential:5s..5m");
    usage(&["work", "--route", "a=exec:b", "--lease=-5s"], "it is negative");
    usage(&["messages", "list", "--limit", "x"], "--limit");
    usage(&["--nonsense"], "--nonsense");
    assert!(!shop.path("mailslot.db").exists());
}

#[test]
fn settings_of_a_worker_are_checked_before_anything_is_opened() {
    let shop = Shop::new();
    let refused = |flags: &[&str], words: &[&str]| {
        let ran = shop.run(&[&["work", "--drain", "--route", "*=exec:true"], flags].concat());
        ran.fails(65, words);
    };
    refused(&["--heartbeat", "6s", "--lease", "10s"], &["--heartbeat", "at most half of the lease"]);
    refused(&["--lease", "1ms"], &["--lease", "use 100ms"]);
    refused(&["--concurrency", "0"], &["--concurrency", "use 1 to"]);
    refused(&["--batch", "1001"], &["--batch", "use 1 to 1000"]);
    refused(&["--time-limit", "0s"], &["--time-limit", "leave it out"]);
    assert!(!shop.path("mailslot.db").exists());
    refused(&["--max-attempts", "0"], &["--max-attempts", "1 means no retry"]);
    refused(&["--endpoint", ""], &["--endpoint", "is blank"]);
    refused(&["--retry", "exponential:5m..5s"], &["--retry", "shorter than the initial delay"]);
}

#[test]
fn filters_are_checked() {
    let shop = Shop::new();
    shop.ok(&["migrate"]);
    shop.run(&["messages", "list", "--status", "lost"]).fails(65, &["--status", "use one of pending"]);
    shop.run(&["messages", "list", "--reason", "bad luck"]).fails(65, &["--reason", "use one of"]);
    shop.run(&["messages", "list", "--after", "x"]).fails(65, &["--after", "page before"]);
    shop.run(&["messages", "list", "--limit", "0"]).fails(65, &["--limit", "use 1 to 1000"]);
    shop.run(&["messages", "list", "--tenant", ""]).fails(65, &["--tenant", "is blank"]);
    shop.run(&["messages", "show", "7"]).fails(65, &["message id", "not a UUID"]);
    shop.run(&["redrive", "start", "--rate", "0"]).fails(65, &["--rate", "use 1 to 100000"]);
    shop.run(&["redrive", "pause", "x"]).fails(65, &["number of the redrive"]);
}
