//! `mailslot messages`.

use crate::shop::Shop;
use serde_json::{Value, json};

const NOBODY: &str = "0190b2c4-7a3e-7c11-8d6b-0f6f5a1e9d10";

#[track_caller]
pub(crate) fn check_list(shop: &Shop, flags: &[&str], expected: &[&String]) {
    let page = shop.json(&[&["messages", "list"], flags].concat());
    assert_eq!(ids(&page).iter().collect::<Vec<_>>(), expected, "{flags:?}");
}

fn ids(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().unwrap();
    messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_list_is_paged_filtered_and_never_shows_a_payload() {
    let shop = Shop::new();
    let all: Vec<_> =
        (0..5).map(|n| shop.accept("a@1", &["--key", &format!("k{n}")], "\"hidden\"")).collect();
    let other = shop.accept("b@2", &["--tenant", "acme", "--correlation", "c", "--endpoint", "e"], "1");
    let first = shop.json(&["messages", "list", "--limit", "4"]);
    assert_eq!(ids(&first), all[..4]);
    let next = first["next"].as_str().unwrap();
    let second = shop.json(&["messages", "list", "--limit", "4", "--after", next]);
    check_list(&shop, &["--limit", "4", "--after", next], &[&all[4], &other]);
    assert!(second.get("next").is_none());
    check_list(&shop, &["--newest", "--limit", "1"], &[&other]);
    let filters = [["--tenant", "acme"], ["--contract", "b@2"], ["--correlation", "c"], ["--endpoint", "e"]];
    for filter in &filters {
        check_list(&shop, filter, &[&other]);
    }
    check_list(&shop, &["--key", "k3"], &[&all[3]]);
    check_list(&shop, &["--status", "completed,skipped"], &[]);
    check_list(&shop, &["--accepted-before", "2000-01-01T00:00:00Z", "--status", "pending"], &[]);
    check_list(&shop, &["--accepted-from", "2000-01-01T00:00:00Z", "--newest", "--limit", "1"], &[&other]);
    let text = shop.ok(&["messages", "list", "--limit", "2"]);
    assert!(text.starts_with("ID ") && text.contains("there are more: add --after c"), "{text}");
    assert!(!text.contains("hidden") && !first.to_string().contains("hidden"));
    assert_eq!(shop.ok(&["messages", "list", "--tenant", "nobody"]), "no message matches\n");
}

#[test]
fn show_says_why_in_words_and_the_payload_only_when_asked() {
    let shop = Shop::new();
    let id = shop.accept("a@1", &[], "{\"card\":\"4111\"}");
    let text = shop.ok(&["messages", "show", &id]);
    assert!(text.contains(&format!("{id} is pending\ndue since")), "{text}");
    assert!(text.contains("no worker holds any of contract a@1 on endpoint default"), "{text}");
    assert!(!text.contains("4111"), "{text}");
    assert!(shop.ok(&["messages", "show", &id, "--payload"]).contains("PAYLOAD\n{\"card\":\"4111\"}"));
    assert_eq!(shop.ok(&["messages", "show", &id, "--raw"]), "{\"card\":\"4111\"}");
    shop.run(&["messages", "show", NOBODY]).fails(66, &[NOBODY, "messages list"]);
    let steering = shop.accept("a@1", &["--no-check"], "\u{1b}[31mred");
    assert!(shop.ok(&["messages", "show", &steering, "--payload"]).contains("\u{fffd}[31mred"));
}

#[test]
fn one_id_of_two_tenants_needs_the_tenant() {
    let shop = Shop::new();
    shop.accept("a@1", &["--id", NOBODY, "--tenant", "one"], "1");
    shop.accept("a@1", &["--id", NOBODY, "--tenant", "two"], "1");
    shop.run(&["messages", "show", NOBODY]).fails(65, &["belongs to 2 messages", "name one of them"]);
    assert_eq!(shop.json(&["messages", "show", NOBODY, "--tenant", "two"])["tenant"], "two");
}

#[test]
fn a_dead_letter_tells_its_history_and_can_be_requeued_or_skipped() {
    let shop = Shop::new();
    let id = shop.accept("a@1", &["--session", "s"], "1");
    let behind = shop.accept("a@1", &["--session", "s"], "1");
    shop.drain("echo out of paper >&2; exit 1", &["--max-attempts", "1"]);
    let text = shop.ok(&["messages", "show", &id]);
    assert!(text.contains("ended at") && text.contains("`attempts_exhausted`"), "{text}");
    assert!(text.contains("error of attempt 1:\n  the command exited with 1: out of paper"), "{text}");
    let why = shop.show(&behind)["why"].as_str().unwrap().to_owned();
    assert_eq!(
        why,
        format!(
            "waits behind message {id} of session s, which is dead_lettered; requeue or skip that one and the session goes on"
        )
    );
    let blocked = shop.json(&["sessions", "--blocked"]);
    assert_eq!((&blocked[0]["head"], &blocked[0]["parked"]), (&json!(id), &json!(1)));
    assert!(shop.ok(&["sessions"]).contains("dead_lettered"));
    assert_eq!(shop.ok(&["messages", "requeue", &id, "--dry-run"]), "would requeue: 1 of 1 message\n");
    assert_eq!(shop.ok(&["messages", "requeue", &id]), "requeue: 1 of 1 message\n");
    assert_eq!(shop.show(&id)["attempt"], json!({"generation": 1, "number": 0}));
    shop.drain("exit 65", &[]);
    assert_eq!(shop.json(&["messages", "skip", &id])["changed"], 1);
    assert_eq!(
        (&shop.show(&id)["status"], &shop.show(&behind)["status"]),
        (&json!("skipped"), &json!("pending"))
    );
    assert_eq!(shop.ok(&["sessions", "--blocked"]), "no session is blocked\n");
    let kinds: Vec<_> =
        shop.show(&id)["history"].as_array().unwrap().iter().map(|o| o["kind"].clone()).collect();
    assert_eq!(kinds, ["dead_lettered", "requeued", "dead_lettered", "skipped"]);
}

#[test]
fn a_change_says_what_it_could_not_do() {
    let shop = Shop::new();
    let id = shop.accept("a@1", &[], "1");
    let ran = shop.run(&["messages", "requeue", &id]).ok();
    assert_eq!(ran.out, "requeue: 0 of 1 messages\n");
    assert!(ran.err.contains("not in a state to requeue, which is: dead_lettered"), "{}", ran.err);
    let ran = shop.run(&["--json", "messages", "cancel", &id, NOBODY]).fails(66, &[NOBODY]);
    assert_eq!((&ran.lines()[0]["changed"], &ran.lines()[0]["not_found"]), (&json!(1), &json!([NOBODY])));
    assert_eq!(shop.show(&id)["status"], "cancelled");
    shop.run(&["messages", "cancel"]).fails(2, &["name ids", "--all"]);
    shop.run(&["messages", "cancel", "--all", "--tenant", "x"]).fails(2, &["--all"]);
}

#[test]
fn a_purge_asks_and_everything_needs_all_and_yes() {
    let shop = Shop::new();
    shop.accept("a@1", &[], "1");
    shop.accept("b@1", &[], "1");
    shop.run(&["messages", "purge", "--yes"]).fails(2, &["--all"]);
    shop.run(&["messages", "purge", "--all"]).fails(2, &["2 messages would be deleted", "--yes"]);
    assert_eq!(shop.ok(&["messages", "purge", "--all", "--dry-run"]), "would purge: 2 messages\n");
    assert_eq!(shop.ok(&["messages", "purge", "--contract", "a@1", "--yes"]), "purge: 1 message\n");
    assert_eq!(shop.json(&["messages", "purge", "--all", "--yes"])["changed"], 1);
    assert_eq!(shop.json(&["counts"]), json!([]));
}
