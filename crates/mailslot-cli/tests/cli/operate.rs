//! The smaller commands: `counts`, `leases`, `handoff`, `retention`, `migrate`, `doctor`, `completions`, `exit-codes`.

use crate::shop::Shop;
use crate::stores::sql;
use mailslot::{HandlerError, HandlerOptions, Handoff, Inbox, Raw};
use serde_json::json;

/// The way of a message from a new file to a clean bill of health.
#[test]
fn smoke() {
    let shop = Shop::new();
    assert_eq!(shop.ok(&["migrate"]), "the sqlite store has schema 1, and this program wants 1\n");
    let id = shop.accept("orders.placed@1", &[], "{\"total\":1}");
    assert_eq!(shop.drain("cat > got", &[])["completed"], 1);
    assert_eq!(shop.read("got"), "{\"total\":1}");
    assert_eq!(shop.show(&id)["status"], "completed");
    assert_eq!(shop.json(&["counts"])[0]["counts"], json!({"completed": 1}));
    let health = shop.ok(&["doctor"]);
    assert!(health.contains("one_place") && !health.contains("violated"), "{health}");
}

#[test]
fn the_schema_can_be_printed_and_applied_by_hand() {
    let shop = Shop::new();
    let script = shop.ok(&["migrate", "--print"]);
    assert!(!shop.path("mailslot.db").exists(), "nothing is opened");
    sql(&shop, "mailslot.db", script.leak());
    assert_eq!(shop.ok(&["migrate"]), "the sqlite store has schema 1, and this program wants 1\n");
}

#[test]
fn empty_stores_say_so() {
    let shop = Shop::new();
    shop.ok(&["migrate"]);
    assert_eq!(shop.ok(&["counts"]), "the store holds no messages\n");
    assert_eq!(shop.ok(&["leases"]), "no worker holds a message\n");
    assert_eq!(shop.ok(&["sessions"]), "no session is open\n");
    for command in [&["counts"][..], &["leases"], &["sessions"], &["redrive", "list"]] {
        assert_eq!(shop.json(command), json!([]), "{command:?}");
    }
}

/// A handler that starts work elsewhere can only be written in a program.
fn suspend(shop: &Shop, message: &str) {
    async fn elsewhere(_: Raw) -> Result<Handoff, HandlerError> {
        Ok(Handoff::new("waits for the bank")?.external_job_id("job-7"))
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = mailslot::open(shop.path("mailslot.db").to_str().unwrap()).await.unwrap();
        let options = HandlerOptions::new();
        let inbox =
            Inbox::builder(store).raw_handler(message.parse().unwrap(), elsewhere, options).build().unwrap();
        let suspended = async {
            inbox.watch().wait_for(|stats| stats.suspended == 1).await.unwrap();
        };
        inbox.run(suspended).await.unwrap();
    });
}

#[test]
fn a_handoff_is_settled_from_outside() {
    let shop = Shop::new();
    let id = shop.accept("pay@1", &[], "1");
    shop.run(&["handoff", "complete", &id]).fails(66, &["no suspended message", &id]);
    suspend(&shop, "pay@1");
    let why = shop.show(&id)["why"].as_str().unwrap().to_owned();
    assert_eq!(
        why,
        "waits for work elsewhere: waits for the bank (job job-7); `mailslot handoff` settles it"
    );
    assert_eq!(shop.ok(&["handoff", "complete", &id]), format!("{id} is completed\n"));
    assert_eq!(shop.show(&id)["status"], "completed");
    let id = shop.accept("pay@1", &[], "1");
    suspend(&shop, "pay@1");
    assert_eq!(shop.json(&["handoff", "fail", &id, "--error", "card expired"])["status"], "dead_lettered");
    let message = shop.show(&id);
    assert_eq!((&message["reason"], &message["error"]), (&json!("handoff_failed"), &json!("card expired")));
}

#[test]
fn retention_is_shown_and_run() {
    let shop = Shop::new();
    shop.dead_letter("a@1", &[]);
    let text = shop.ok(&["retention", "show", "--skipped", "36h"]);
    assert!(text.contains("1d 12h") && text.contains("dead_lettered  ever"), "{text}");
    assert_eq!(shop.json(&["retention", "run"])["deleted"], 0);
    assert_eq!(shop.ok(&["retention", "run", "--dead-lettered", "0s"]), "deleted 1 message\n");
}

#[test]
fn a_broken_invariant_is_found_named_and_mended() {
    let shop = Shop::new();
    shop.accept("a@1", &[], "1");
    sql(&shop, "mailslot.db", "UPDATE mailslot_tally SET messages = 7");
    let ran = shop.run(&["doctor"]).fails(1, &["1 violation", "doctor --repair"]);
    assert!(ran.out.contains("violated: counts: ") && ran.out.contains("  repair: "), "{}", ran.out);
    let report = &shop.run(&["--json", "doctor"]).fails(1, &[]).lines()[0];
    assert_eq!((&report["ok"], &report["violations"][0]["invariant"]), (&json!(false), &json!("counts")));
    assert_eq!(shop.json(&["doctor", "--repair"])["repaired"][0]["invariant"], "counts");
    shop.ok(&["doctor"]);
    sql(&shop, "mailslot.db", "DELETE FROM mailslot_ready");
    let ran = shop.run(&["doctor", "--repair"]).fails(1, &["follow what is said"]);
    assert!(ran.out.contains("one_place"), "{}", ran.out);
}

#[test]
fn completions_are_printed_for_each_shell() {
    let shop = Shop::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(shop.ok(&["completions", shell]).contains("redrive"), "{shell}");
    }
    assert_eq!(shop.run(&["completions", "cmd"]).code, 2);
}

#[test]
fn exit_codes_are_documented_in_the_program() {
    let shop = Shop::new();
    let table = shop.ok(&["exit-codes"]);
    assert!(table.contains(" 73  conflict"), "{table}");
    assert!(shop.ok(&["help", "exit-codes"]).contains(" 73  conflict"));
    assert!(shop.ok(&["--help"]).contains(" 73  conflict"));
    assert_eq!(shop.json(&["exit-codes"]).as_array().unwrap().len(), 9);
}

#[test]
fn output_is_plain_when_nobody_watches() {
    let shop = Shop::new();
    shop.dead_letter("a@1", &[]);
    for command in [&["messages", "list"][..], &["counts"], &["doctor"]] {
        assert!(!shop.ok(command).contains('\u{1b}'), "{command:?}");
    }
}

#[test]
fn quiet_leaves_results_and_errors() {
    let shop = Shop::new();
    let ran = shop.run_with(&["-q", "accept", "--ndjson"], "{\"contract\":\"a@1\",\"payload\":1}\noops");
    assert_eq!(ran.err.lines().count(), 1, "{ran:#?}");
    assert!(ran.out.contains("accepted"));
    assert_eq!(shop.run(&["-q", "-v", "counts"]).code, 2);
}
