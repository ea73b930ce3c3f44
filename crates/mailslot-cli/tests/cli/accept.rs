//! `mailslot accept`, one payload at a time.

use crate::shop::Shop;
use serde_json::json;

#[test]
fn a_receipt_is_printed_and_a_repeat_returns_the_first() {
    let shop = Shop::new();
    let accept = ["accept", "--contract", "orders.placed@1", "--key", "order-7"];
    let first = shop.run_with(&accept, r#"{"total":1}"#).ok();
    assert!(first.out.starts_with("ID  ") && first.out.contains("  accepted  "), "{}", first.out);
    assert!(first.out.contains("orders.placed@1"), "{}", first.out);
    let second = shop.run_with(&accept, r#"{"total":1}"#).ok();
    assert!(second.out.contains("already accepted: pending"), "{}", second.out);
    let id = |text: &str| text.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(id(&first.out), id(&second.out));
}

#[test]
fn a_key_with_other_content_is_a_conflict_unless_the_first_is_wanted() {
    let shop = Shop::new();
    let first = shop.accept("a@1", &["--key", "k"], "1");
    let accept = ["accept", "--contract", "a@1", "--key", "k"];
    shop.run_with(&accept, "2").fails(73, &["--key", &first, "--on-conflict return-first"]);
    assert_eq!(shop.accept("a@1", &["--key", "k", "--on-conflict", "return-first"], "2"), first);
    let other_tenant = shop.accept("a@1", &["--key", "k", "--tenant", "acme"], "2");
    assert_ne!(other_tenant, first);
}

#[test]
fn key_policies_free_the_key() {
    let shop = Shop::new();
    let accept = |policy: &str| shop.accept("a@1", &["--key", policy, "--key-policy", policy], "1");
    let (retained, finished) = (accept("retained"), accept("until-finished"));
    shop.drain("exit 0", &[]);
    assert_eq!(accept("retained"), retained);
    assert_ne!(accept("until-finished"), finished);
}

#[test]
fn a_supplied_id_is_kept_and_deduplicates() {
    let shop = Shop::new();
    let id = "0190b2c4-7a3e-7c11-8d6b-0f6f5a1e9d10";
    assert_eq!(shop.accept("a@1", &["--id", id], "1"), id);
    assert_eq!(shop.accept("a@1", &["--id", id], "1"), id);
    let accept = ["accept", "--contract", "a@1", "--id", id];
    shop.run_with(&accept, "2").fails(73, &["the message id", "use another one"]);
}

#[test]
fn everything_beside_the_payload_is_stored() {
    let shop = Shop::new();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let flags = [
        "--tenant",
        "acme",
        "--session",
        "order-7",
        "--endpoint",
        "billing",
        "--priority",
        "high",
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
        "from=shop",
        "--header",
        "to=",
        "--content-type",
        "application/vnd.order+json",
        "--due-at",
        "2099-01-01T00:00:00Z",
    ];
    // Later than ten years is taken for a wrong unit.
    let far = [&["accept", "--contract", "a@2"], &flags[..]].concat();
    shop.run_with(&far, "{}").fails(65, &["--due-in or --due-at", "ten years"]);
    let flags = [&flags[..flags.len() - 2], &["--due-in", "1h 30m"]].concat();
    let shown = shop.show(&shop.accept("a@2", &flags, "{}"));
    let expected = json!({
        "tenant": "acme", "session": "order-7", "endpoint": "billing", "priority": "high", "key": "k",
        "correlation": "c", "causation": "b", "traceparent": trace, "tracestate": "a=1",
        "headers": {"from": "shop", "to": ""}, "content_type": "application/vnd.order+json", "contract": "a@2",
        "status": "pending", "payload_bytes": 2,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
    assert!(shown["why"].as_str().unwrap().starts_with("not due until"), "{shown}");
    assert!(shown.get("payload").is_none());
}

#[test]
fn a_payload_is_any_bytes_and_json_is_checked_now() {
    let shop = Shop::new();
    let accept = ["accept", "--contract", "a@1"];
    shop.run_with(&accept, "{\"a\":\n oops").fails(65, &["line 2, column 2", "--no-check"]);
    shop.run_with(&[&accept[..], &["--content-type", "x/y+json"]].concat(), "{").fails(65, &["not JSON"]);
    shop.run_with(&[&accept[..], &["--no-check"]].concat(), "{").ok();
    let bytes: Vec<u8> = (0..=255).collect();
    shop.write("bytes", &bytes);
    shop.ok(&["accept", "--contract", "b@1", "--content-type", "application/octet-stream", "bytes"]);
    shop.drain("cat > \"got-$MAILSLOT_CONTRACT\"", &[]);
    assert_eq!(std::fs::read(shop.path("got-b")).unwrap(), bytes);
    let id = shop.json(&["messages", "list", "--contract", "b@1"])["messages"][0]["id"].clone();
    let shown = shop.json(&["messages", "show", id.as_str().unwrap(), "--payload"]);
    assert!(shown["payload_hex"].as_str().unwrap().ends_with("fdfeff"));
}

#[test]
fn several_files_are_several_messages_and_a_batch_is_all_or_nothing() {
    let shop = Shop::new();
    shop.write("a.json", "1");
    shop.write("b.json", "2");
    shop.write("bad.json", "{");
    let accept = ["--json", "accept", "--contract", "a@1"];
    assert_eq!(shop.run(&[&accept[..], &["a.json", "b.json"]].concat()).ok().lines().len(), 2);
    let together = shop.run(&[&accept[..], &["--batch", "a.json", "bad.json"]].concat());
    assert_eq!(together.fails(65, &["bad.json", "not JSON", "no message was stored"]).out, "");
    let one_by_one = shop.run(&[&accept[..], &["a.json", "bad.json"]].concat());
    assert_eq!(one_by_one.fails(65, &["bad.json"]).lines().len(), 1);
    assert_eq!(shop.run(&[&accept[..], &["--batch", "a.json", "b.json"]].concat()).ok().lines().len(), 2);
    assert_eq!(shop.json(&["counts"])[0]["counts"]["pending"], 5);
    shop.run(&[&accept[..], &["--key", "k", "a.json", "b.json"]].concat()).fails(2, &["--ndjson"]);
    shop.run(&[&accept[..], &["missing.json"]].concat()).fails(66, &["missing.json"]);
}
