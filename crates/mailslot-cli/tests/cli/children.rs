//! Commands that misbehave: none of them may hang the worker, and nothing that one started may outlive it.

use crate::shop::Shop;
use std::fmt::Write as _;

/// Runs one message of `payload` through a command and gives what became of it.
fn handled(shop: &Shop, payload: &str, command: &str, flags: &[&str]) -> serde_json::Value {
    let id = shop.accept("a@1", &[], payload);
    shop.drain(command, flags);
    shop.show(&id)
}

fn error_of(message: &serde_json::Value) -> &str {
    message["error"].as_str().unwrap_or_default()
}

#[test]
fn a_child_that_does_not_read_its_input_completes() {
    let shop = Shop::new();
    let payload = format!("\"{}\"", "x".repeat(2 * 1024 * 1024));
    assert_eq!(handled(&shop, &payload, "exit 0", &[])["status"], "completed");
    assert_eq!(handled(&shop, &payload, "exec 0<&-; exit 0", &[])["status"], "completed");
    assert_eq!(handled(&shop, &payload, "head -c 1 >/dev/null", &[])["status"], "completed");
}

#[test]
fn a_child_may_write_a_megabyte_and_its_last_words_are_kept() {
    let shop = Shop::new();
    let flood = "head -c 1000000 /dev/zero | tr '\\0' x";
    let command = format!("{flood}; {flood} >&2; echo last words >&2; exit 65");
    let message = handled(&shop, "1", &command, &[]);
    assert_eq!((&message["status"], &message["reason"]), (&"dead_lettered".into(), &"permanent".into()));
    let error = error_of(&message);
    assert!(error.starts_with("the command exited with 65: x") && error.ends_with("last words"), "{error}");
    assert!((3_900..=4_096).contains(&error.len()), "{}", error.len());
    assert_eq!(handled(&shop, "1", &format!("{flood}; exit 0"), &[])["status"], "completed");
}

#[test]
fn what_a_child_writes_is_kept_even_if_it_is_no_text() {
    let shop = Shop::new();
    let message = handled(&shop, "1", r"printf '\377\001\033[31m' >&2; exit 1", &["--retry", "never"]);
    assert_eq!(error_of(&message), "the command exited with 1: \u{fffd}\u{fffd}\u{fffd}[31m");
}

#[test]
fn a_time_limit_kills_the_child_and_its_children() {
    let shop = Shop::new();
    shop.fifo("alive");
    // The pipe is at its end when everyone who has it is dead.
    let command = "exec 3>alive; echo last words >&2; sleep 1000 & sleep 1000";
    let message = std::thread::scope(|scope| {
        let dead = scope.spawn(|| shop.wait_for("alive"));
        let message = handled(&shop, "1", command, &["--time-limit", "200ms", "--retry", "never"]);
        dead.join().unwrap();
        message
    });
    assert_eq!(message["status"], "dead_lettered");
    let error = error_of(&message);
    assert!(error.contains("ran past its limit of 200ms") && error.ends_with("last words"), "{error}");
}

#[test]
fn what_a_child_leaves_behind_ends_with_it() {
    let shop = Shop::new();
    shop.fifo("alive");
    let status = std::thread::scope(|scope| {
        let dead = scope.spawn(|| shop.wait_for("alive"));
        let message = handled(&shop, "1", "exec 3>alive; sleep 1000 & exit 0", &[]);
        dead.join().unwrap();
        message["status"].clone()
    });
    assert_eq!(status, "completed");
}

#[test]
fn a_grandchild_that_left_the_group_does_not_hang_the_worker() {
    let shop = Shop::new();
    shop.fifo("gate");
    shop.fifo("left");
    // Once it has left it keeps all three pipes open until it is let go.
    let payload = format!("\"{}\"", "x".repeat(1024 * 1024));
    let message = handled(
        &shop,
        &payload,
        "setsid sh -c 'echo now >left; read line <gate' & read line <left; echo words >&2; exit 65",
        &[],
    );
    assert_eq!(error_of(&message), "the command exited with 65: words");
    shop.let_go("gate");
}

#[test]
fn a_signal_and_a_missing_program_are_tried_again() {
    let shop = Shop::new();
    let message = handled(&shop, "1", "kill -9 $$", &[]);
    assert_eq!(
        (&message["status"], error_of(&message)),
        (&"pending".into(), "the command was killed by signal 9")
    );
    let message = handled(&shop, "1", "no-such-program-here", &[]);
    assert_eq!(message["status"], "pending");
    assert!(error_of(&message).starts_with("the command exited with 127: "), "{message}");
}

#[test]
fn a_command_sees_the_message_and_nothing_of_the_surroundings() {
    let shop = Shop::new();
    let names = "MAILSLOT_ID MAILSLOT_CONTRACT MAILSLOT_CONTRACT_VERSION MAILSLOT_ENDPOINT MAILSLOT_TENANT \
                 MAILSLOT_SESSION MAILSLOT_KEY MAILSLOT_ATTEMPT MAILSLOT_GENERATION MAILSLOT_FENCE \
                 MAILSLOT_ACCEPTED_AT MAILSLOT_DUE_AT MAILSLOT_CONTENT_TYPE MAILSLOT_CORRELATION MAILSLOT_CAUSATION \
                 MAILSLOT_HEADERS TRACEPARENT TRACESTATE";
    let mut script = String::from("{ ");
    for name in names.split_whitespace() {
        writeln!(script, "echo \"{name}=${{{name}-unset}}\"").unwrap();
    }
    script += "} >> seen-$MAILSLOT_CONTRACT";
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let full = [
        "--tenant",
        "acme",
        "--session",
        "s",
        "--key",
        "k",
        "--correlation",
        "c",
        "--causation",
        "b",
        "--traceparent",
        trace,
        "--tracestate",
        "a=1",
        "--header",
        "h=\"v\"",
    ];
    let id = shop.accept("full@7", &full, "1");
    shop.accept("bare@1", &[], "1");
    let mut work = shop.command(&["work", "--drain", "--route", &format!("*=exec:{script}")]);
    for name in names.split_whitespace() {
        work.env(name, "inherited");
    }
    assert!(work.status().unwrap().success());
    let (full, bare) = (shop.read("seen-full"), shop.read("seen-bare"));
    assert!(!full.contains("inherited") && !bare.contains("inherited"), "{full}{bare}");
    let accepted = shop.show(&id)["accepted_at"].as_str().unwrap().to_owned();
    let expected = [
        format!("MAILSLOT_ID={id}"),
        format!("MAILSLOT_ACCEPTED_AT={accepted}"),
        format!("MAILSLOT_DUE_AT={accepted}"),
        format!("TRACEPARENT={trace}"),
        "MAILSLOT_CONTRACT=full".into(),
        "MAILSLOT_CONTRACT_VERSION=7".into(),
        "MAILSLOT_ENDPOINT=default".into(),
        "MAILSLOT_TENANT=acme".into(),
        "MAILSLOT_SESSION=s".into(),
        "MAILSLOT_KEY=k".into(),
        "MAILSLOT_ATTEMPT=1".into(),
        "MAILSLOT_GENERATION=0".into(),
        "MAILSLOT_FENCE=1".into(),
        "MAILSLOT_CONTENT_TYPE=application/json".into(),
        "MAILSLOT_CORRELATION=c".into(),
        "MAILSLOT_CAUSATION=b".into(),
        r#"MAILSLOT_HEADERS={"h":"\"v\""}"#.into(),
        "TRACESTATE=a=1".into(),
    ];
    for line in expected {
        assert!(full.lines().any(|seen| seen == line), "no {line} in {full}");
    }
    assert_eq!(bare.lines().filter(|line| line.ends_with("=unset")).count(), 8, "{bare}");
}
