//! `mailslot work`: what becomes of messages, and how a worker stops.

use crate::shop::Shop;
use crate::stores::sql;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

#[test]
fn exit_codes_decide() {
    let shop = Shop::new();
    let id = |code: &str| shop.accept("a@1", &["--header", &format!("code={code}")], code);
    let ids = ["0", "75", "65", "1"].map(id);
    let counts = shop.drain("exit $(cat)", &[]);
    assert_eq!(
        (&counts["completed"], &counts["retried"], &counts["dead_lettered"]),
        (&json!(1), &json!(2), &json!(1))
    );
    let statuses = ids.map(|id| shop.show(&id)["status"].as_str().unwrap().to_owned());
    assert_eq!(statuses, ["completed", "pending", "dead_lettered", "pending"]);
}

#[test]
fn attempts_end_and_a_retry_waits() {
    let shop = Shop::new();
    let id = shop.accept("a@1", &[], "1");
    shop.drain("exit 1", &["--max-attempts", "2", "--retry", "fixed:1h"]);
    let message = shop.show(&id);
    assert_eq!((&message["status"], &message["reason"]), (&"pending".into(), &"failed".into()));
    assert!(
        message["why"].as_str().unwrap().contains("attempt 1 ended with `failed`; not due until"),
        "{message}"
    );
    assert_eq!(shop.drain("exit 0", &[])["started"], 0);
    let id = shop.accept("a@1", &[], "1");
    shop.drain("exit 1", &["--retry", "never"]);
    assert_eq!(shop.show(&id)["reason"], "attempts_exhausted");
}

#[test]
fn the_first_route_that_matches_takes_the_message_and_others_wait() {
    let shop = Shop::new();
    for contract in ["orders.placed@1", "orders.placed@2", "orders.paid@1", "other@1"] {
        shop.accept(contract, &[], "1");
    }
    shop.accept("orders.placed@1", &["--endpoint", "elsewhere"], "1");
    let route = |glob: &str, word: &str| format!("{glob}=exec:echo {word} $MAILSLOT_CONTRACT >> ran");
    let (first, second, third) =
        (route("*@2", "two"), route("orders.placed", "placed"), route("orders.*", "order"));
    shop.ok(&[
        "work",
        "--drain",
        "--concurrency",
        "1",
        "--route",
        &first,
        "--route",
        &second,
        "--route",
        &third,
    ]);
    let ran = shop.read("ran");
    let ran: BTreeSet<_> = ran.lines().collect();
    assert_eq!(ran, ["order orders.paid", "placed orders.placed", "two orders.placed"].into());
    let counts = shop.json(&["counts"]);
    let waiting: Vec<_> =
        counts.as_array().unwrap().iter().filter(|lane| lane["unattended"] == true).collect();
    assert_eq!(waiting.len(), 2, "{counts}");
    assert!(shop.ok(&["counts"]).contains("does one have a route for this contract?"));
}

#[test]
fn a_drain_leaves_what_is_due_later_and_reports_what_it_did() {
    let shop = Shop::new();
    shop.accept("a@1", &[], "1");
    shop.accept("a@1", &["--due-in", "1h"], "1");
    let ran = shop.run(&["work", "--drain", "--route", "*=exec:true"]).ok();
    assert_eq!(ran.out, "1 completed\n");
    assert_eq!(shop.drain("true", &[])["started"], 0);
}

#[test]
fn sessions_run_in_order_also_over_a_retry() {
    let shop = Shop::new();
    for n in 0..20 {
        shop.accept("a@1", &["--session", "s"], &n.to_string());
    }
    let command = "read n; echo $n >> ran; if [ $n = 7 ] && [ $MAILSLOT_ATTEMPT = 1 ]; then exit 75; fi";
    shop.drain(command, &["--retry", "fixed:0s"]);
    shop.drain(command, &[]);
    let ran: Vec<u32> = shop.read("ran").lines().map(|line| line.parse().unwrap()).collect();
    let mut expected: Vec<u32> = (0..20).collect();
    expected.insert(7, 7);
    assert_eq!(ran, expected);
}

#[test]
fn retention_of_a_worker_deletes_what_ended() {
    let shop = Shop::new();
    shop.accept("a@1", &[], "1");
    shop.drain("exit 0", &[]);
    shop.ok(&["retention", "run", "--completed", "never"]);
    assert_eq!(shop.json(&["retention", "show"])[0]["messages"], 1);
    assert_eq!(shop.json(&["retention", "run", "--completed", "0s"])["deleted"], 1);
    assert_eq!(shop.json(&["counts"]), json!([]));
}

/// A worker that runs.
struct Worker {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Worker {
    fn start(shop: &Shop, command: &str, flags: &[&str]) -> Self {
        let route = format!("*=exec:{command}");
        let mut worker = shop.command(&[&["--json", "work", "--route", &route], flags].concat());
        worker.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = worker.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").arg("-s").arg(name).arg(self.child.id().to_string()).status();
        assert!(status.unwrap().success());
    }

    /// Waits until the log says a word.
    fn says(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the worker never said {word:?}");
        }
    }

    fn ends(self) -> (Option<i32>, String) {
        drop(self.log);
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }
}

#[test]
fn a_signal_lets_running_commands_finish() {
    for signal in ["TERM", "INT"] {
        let shop = Shop::new();
        shop.fifo("started");
        shop.fifo("gate");
        let id = shop.accept("a@1", &[], "1");
        let mut worker = Worker::start(&shop, "echo now > started; read line < gate", &[]);
        shop.wait_for("started");
        assert_eq!(shop.show(&id)["status"], "leased");
        let leases = shop.json(&["leases"]);
        let label = format!("process {}", worker.child.id());
        assert!(leases[0]["worker"].as_str().unwrap().ends_with(&label), "{leases}");
        worker.signal(signal);
        worker.says("stopping");
        shop.let_go("gate");
        assert_eq!(worker.ends().0, Some(0));
        assert_eq!(shop.show(&id)["status"], "completed");
    }
}

#[test]
fn a_second_signal_ends_everything_at_once() {
    let shop = Shop::new();
    shop.fifo("alive");
    let id = shop.accept("a@1", &[], "1");
    let (started, is_started) = std::sync::mpsc::channel();
    let code = std::thread::scope(|scope| {
        let mut worker = Worker::start(&shop, "exec 3>alive; echo now >&3; sleep 1000 & sleep 1000", &[]);
        let path = shop.path("alive");
        let dead = scope.spawn(move || {
            let mut alive = BufReader::new(std::fs::File::open(path).unwrap());
            alive.read_line(&mut String::new()).unwrap();
            started.send(()).unwrap();
            alive.read_line(&mut String::new()).unwrap()
        });
        is_started.recv().unwrap();
        worker.signal("TERM");
        worker.says("stopping");
        worker.signal("TERM");
        assert_eq!(dead.join().unwrap(), 0);
        worker.ends().0
    });
    assert_eq!(code, Some(128 + 15));
    // Nobody gave it back: it waits for the end of its lease.
    assert_eq!(shop.show(&id)["status"], "leased");
}

#[test]
fn after_the_grace_time_a_command_is_killed_and_its_attempt_given_back() {
    let shop = Shop::new();
    shop.fifo("alive");
    shop.fifo("started");
    let id = shop.accept("a@1", &[], "1");
    std::thread::scope(|scope| {
        let dead = scope.spawn(|| shop.wait_for("alive"));
        let command = "exec 3>alive; echo now > started; sleep 1000 & sleep 1000";
        let worker = Worker::start(&shop, command, &["--grace", "100ms"]);
        shop.wait_for("started");
        worker.signal("TERM");
        assert_eq!(worker.ends().0, Some(0));
        dead.join().unwrap();
    });
    let message = shop.show(&id);
    assert_eq!((&message["status"], &message["attempt"]["number"]), (&"pending".into(), &json!(0)));
}

#[test]
fn a_cancel_reaches_a_running_command() {
    let shop = Shop::new();
    shop.fifo("alive");
    shop.fifo("started");
    let id = shop.accept("a@1", &[], "1");
    std::thread::scope(|scope| {
        let dead = scope.spawn(|| shop.wait_for("alive"));
        let command = "exec 3>alive; echo now > started; sleep 1000 & sleep 1000";
        let worker = Worker::start(&shop, command, &["--lease", "2s", "--heartbeat", "50ms", "--drain"]);
        shop.wait_for("started");
        assert_eq!(shop.json(&["messages", "cancel", &id])["changed"], 1);
        dead.join().unwrap();
        let (code, out) = worker.ends();
        let counts: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &counts["cancelled"]), (Some(0), &json!(1)));
    });
    assert_eq!(shop.show(&id)["status"], "cancelled");
}

#[test]
fn a_lost_lease_kills_the_command() {
    let shop = Shop::new();
    shop.fifo("alive");
    shop.fifo("started");
    shop.accept("a@1", &[], "1");
    std::thread::scope(|scope| {
        let dead = scope.spawn(|| shop.wait_for("alive"));
        let command = "exec 3>alive; echo now > started; sleep 1000 & sleep 1000";
        let worker = Worker::start(&shop, command, &["--heartbeat", "50ms", "--drain"]);
        shop.wait_for("started");
        sql(&shop, "mailslot.db", "DELETE FROM mailslot_lease");
        dead.join().unwrap();
        let (code, out) = worker.ends();
        let counts: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &counts["lease_lost"]), (Some(0), &json!(1)));
    });
}

#[test]
fn a_worker_that_was_killed_gives_its_messages_to_the_next() {
    let shop = Shop::new();
    shop.fifo("started");
    let id = shop.accept("a@1", &[], "1");
    let mut worker = Worker::start(&shop, "echo $$ > started; sleep 1000", &["--lease", "1s"]);
    let command = shop.wait_for("started");
    worker.child.kill().unwrap();
    assert_eq!(worker.ends().0, None);
    // Nobody kills the commands of a worker that was killed. It is gone already if the machine was so slow that the
    // lease was lost before.
    let group = format!("-{}", command.trim());
    Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status().unwrap();
    shop.fifo("again");
    let worker = Worker::start(&shop, "echo now > again", &[]);
    shop.wait_for("again");
    worker.signal("TERM");
    assert_eq!(worker.ends().0, Some(0));
    let message = shop.show(&id);
    assert_eq!(
        (&message["status"], &message["history"][0]["kind"]),
        (&"completed".into(), &json!("expired"))
    );
    assert!(message["attempt"]["number"].as_u64() >= Some(2), "{message}");
}

#[test]
fn two_workers_share_the_work_and_nothing_runs_twice() {
    let shop = Shop::new();
    shop.fifo("started");
    shop.fifo("gate");
    shop.accept_many(100);
    // The first one holds one message until the second one has done the rest.
    let command = "echo $MAILSLOT_ID >> ran; echo now > started; read line < gate";
    let first = Worker::start(&shop, command, &["--drain", "--concurrency", "1", "--batch", "1"]);
    shop.wait_for("started");
    let second = shop.drain("echo $MAILSLOT_ID >> ran", &[]);
    assert_eq!(second["completed"], 99);
    shop.let_go("gate");
    let (code, out) = first.ends();
    let first: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &first["completed"]), (Some(0), &json!(1)));
    let ran = shop.read("ran");
    assert_eq!(ran.lines().count(), 100);
    assert_eq!(ran.lines().collect::<BTreeSet<_>>().len(), 100);
    assert_eq!(shop.json(&["doctor"])["ok"], true);
}

#[test]
fn many_workers_on_one_file_run_everything_once() {
    let shop = Shop::new();
    shop.accept_many(300);
    let workers: Vec<_> = (0..3)
        .map(|_| Worker::start(&shop, "echo $MAILSLOT_ID >> ran", &["--drain", "--batch", "10"]))
        .collect();
    let mut completed = 0;
    for worker in workers {
        let (code, out) = worker.ends();
        assert_eq!(code, Some(0));
        let counts: Value = serde_json::from_str(&out).unwrap();
        completed += counts["completed"].as_u64().unwrap();
    }
    let ran = shop.read("ran");
    assert_eq!((completed, ran.lines().count()), (300, 300));
    assert_eq!(ran.lines().collect::<BTreeSet<_>>().len(), 300);
}
