//! `mailslot redrive`.

use crate::shop::Shop;
use serde_json::json;

#[test]
fn a_redrive_requeues_at_its_rate_and_can_be_driven_from_here() {
    let shop = Shop::new();
    for n in 0..3 {
        shop.accept("a@1", &["--tenant", &format!("t{}", n % 2)], "1");
    }
    shop.drain("exit 65", &[]);
    let started = shop.json(&["redrive", "start", "--rate", "1000", "--tenant", "t0"]);
    assert_eq!(
        (&started["state"], &started["total"], &started["requeued"]),
        (&json!("running"), &json!(2), &json!(0))
    );
    let id = started["id"].to_string();
    assert!(shop.ok(&["redrive", "pause", &id]).starts_with("redrive 1 is paused: 0 of 2 messages"));
    assert_eq!(shop.json(&["redrive", "watch", &id])["state"], "paused");
    assert_eq!(shop.json(&["redrive", "resume", &id])["state"], "running");
    let watched = shop.json(&["redrive", "watch", &id, "--drive"]);
    assert_eq!((&watched["state"], &watched["requeued"]), (&json!("done"), &json!(2)));
    let lane = &shop.json(&["counts"])[0]["counts"];
    assert_eq!((&lane["pending"], &lane["dead_lettered"]), (&json!(2), &json!(1)));
    let second = shop.json(&["redrive", "start", "--rate", "5"]);
    assert_eq!(shop.json(&["redrive", "cancel", &second["id"].to_string()])["state"], "cancelled");
    let list = shop.json(&["redrive", "list"]);
    assert_eq!(shop.json(&["messages", "redrive", "list"]), list, "both ways lead to the same");
    assert_eq!((list.as_array().unwrap().len(), &list[0]["id"]), (2, &second["id"]));
    assert!(shop.ok(&["redrive", "list"]).starts_with("REDRIVE  STATE"));
    let followed = shop.json(&["redrive", "start", "--rate", "1000", "--follow", "--drive"]);
    assert_eq!((&followed["state"], &followed["requeued"]), (&json!("done"), &json!(1)));
}

#[test]
fn a_redrive_that_is_not_there_is_not_found() {
    let shop = Shop::new();
    shop.ok(&["migrate"]);
    assert_eq!(shop.ok(&["redrive", "list"]), "there are no redrives\n");
    for action in ["pause", "resume", "cancel", "watch"] {
        shop.run(&["redrive", action, "7"]).fails(66, &["no redrive 7", "redrive list"]);
    }
}
