//! The demo as a newcomer runs it: its counts, its words, and the commands that it proposes.

use serde_json::Value;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// Far beyond what the demo takes, also on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(180);

fn mailslot() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mailslot"));
    command.env_remove("MAILSLOT_STORE").env_remove("RUST_LOG").stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn output(command: &mut Command) -> Output {
    let output =
        timeout(TOO_LONG, command.output()).await.expect("the program ends").expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {error}");
    output
}

async fn demo(dir: &Path, json: bool) -> String {
    let mut command = mailslot();
    command.arg("demo").arg("--dir").arg(dir.join("demo"));
    if json {
        command.arg("--json");
    }
    String::from_utf8(output(&mut command).await.stdout).expect("the output is text")
}

#[tokio::test]
async fn nothing_is_lost_whatever_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let summary: Value = serde_json::from_str(&demo(dir.path(), true).await).unwrap();
    assert_eq!(
        (&summary["accepted"], &summary["duplicates"], &summary["conflicts"]),
        (&329.into(), &50.into(), &1.into())
    );
    assert!(
        summary["conflict"]
            .as_str()
            .unwrap()
            .contains("`idempotency_key` was used before with other content")
    );
    assert_eq!(summary["crashes"], 3);

    let worked = &summary["worked"];
    assert_eq!(worked["handled"], 329 - 8);
    assert_eq!(worked["dead_letters"], serde_json::json!({ "attempts_exhausted": 7, "crashed": 1 }));
    assert!(worked["retries"].as_u64().unwrap() >= 7 * 2, "{worked}");
    assert!(worked["leases_run_out"].as_u64().unwrap() >= 3, "{worked}");

    assert_eq!(summary["redriven"], 7);
    let repaired = &summary["repaired"];
    assert_eq!(repaired["handled"], 329 - 1);
    assert_eq!(repaired["dead_letters"], serde_json::json!({ "crashed": 1 }));
    for audit in [worked, repaired] {
        for promise in ["lost", "unknown", "effects_twice_unexplained", "out_of_order"] {
            assert_eq!(audit[promise], 0, "{promise} in {audit}");
        }
        assert_eq!(audit["violations"], serde_json::json!([]));
    }
}

/// The proposals are for a shell, so that is what runs them.
#[cfg(unix)]
#[tokio::test]
async fn the_story_is_told_and_its_proposals_work() {
    let dir = tempfile::tempdir().unwrap();
    let story = demo(dir.path(), false).await;
    for phrase in [
        "329 webhooks of GitHub",
        "50 already accepted",
        "`idempotency_key` was used before with other content, by message",
        "The worker died",
        "a new worker takes over",
        "crashes survived             3",
        "dead letters                 8",
        "lost                         0",
        "7 dead letters redriven, 7 handled",
    ] {
        assert!(story.contains(phrase), "the story lacks: {phrase}\n{story}");
    }
    assert!(!story.contains('\x1b'), "colours outside a terminal:\n{story}");
    assert!(!story.contains("Codertocat"), "a payload is shown:\n{story}");

    let proposals: Vec<_> = story.lines().filter(|line| line.contains(" --store ")).collect();
    assert_eq!(proposals.len(), 6, "{story}");
    for proposal in proposals {
        output(Command::new("sh").arg("-c").arg(proposal).stdin(Stdio::null()).kill_on_drop(true)).await;
    }
    let file = dir.path().join("demo").join("mailslot.db");
    let counts = output(mailslot().arg("--store").arg(file).args(["--json", "counts"])).await;
    let counts = String::from_utf8(counts.stdout).unwrap();
    assert!(counts.contains("completed") && !counts.contains("dead_lettered"), "{counts}");
}

#[tokio::test]
async fn a_folder_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.txt"), "mine").unwrap();
    let refused = timeout(TOO_LONG, mailslot().arg("demo").arg("--dir").arg(dir.path()).output()).await;
    let refused = refused.expect("the program ends").unwrap();
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("`dir` is not empty: name a new folder"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_stops_it_in_order() {
    use rustix::process::{Pid, Signal, kill_process};
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("demo");
    let mut child = mailslot()
        .arg("demo")
        .arg("--dir")
        .arg(&dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = timeout(TOO_LONG, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("The worker died") {
                break;
            }
        }
        kill_process(pid, Signal::INT).unwrap();
        while lines.next_line().await.unwrap().is_some() {}
        child.wait_with_output().await.unwrap()
    });
    let told = told.await.expect("the program ends");
    let error = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(!told.status.success() && error.contains("interrupted; what was accepted is in"), "{error}");
    let store = dir.join("mailslot.db");
    output(mailslot().arg("--store").arg(&store).arg("doctor")).await;
}
