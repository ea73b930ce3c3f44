//! A disk without room: in a mount namespace of its own, a small file system in memory holds the server.

use crate::rig::Rig;
use mailslot_core::StoreErrorKind;
use std::process::Command;

/// Says to this program that it runs in the namespace, and where the small file system is.
const SMALL: &str = "MAILSLOT_TEST_SMALL_DISK";

/// The name of the test below, for the runner within.
const TEST: &str = "disk_full::a_full_disk_is_told_and_waited_for";

/// Makes the file system, and becomes the account of before again, which servers run as.
const MOUNT: &str = r#"mount -t tmpfs -o size=128m,mode=1777 small "$1" && shift && exec "$@""#;

/// Runs this test again with its temporary files on a small disk.
fn run_on_a_small_disk() {
    let place = tempfile::tempdir().unwrap();
    let myself = std::env::current_exe().unwrap();
    let user = rustix::process::geteuid();
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !user.is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["sh", "-c", MOUNT, "mount"]).arg(place.path());
    if !user.is_root() {
        let (user, group) = (user.as_raw(), rustix::process::getegid().as_raw());
        command.args(["unshare", "--user", &format!("--map-user={user}"), &format!("--map-group={group}")]);
    }
    command.arg(myself).args(["--exact", TEST, "--nocapture"]);
    let status = command.env("TMPDIR", place.path()).env(SMALL, place.path()).status().unwrap();
    assert!(status.success(), "on the small disk: {status}; it needs the right to mount in a namespace");
}

#[tokio::test]
async fn a_full_disk_is_told_and_waited_for() {
    let Some(place) = std::env::var_os(SMALL) else { return run_on_a_small_disk() };
    let mut rig = Rig::start().await;
    let mut load = rig.working.load();
    load.until_accepted(20).await;
    let ballast = std::path::Path::new(&place).join("ballast");
    fill(&ballast);
    let (kind, error) = load.until_failed().await;
    assert_eq!(kind, StoreErrorKind::NotWritable, "{error}");
    assert!(error.contains("disk of the server is full"), "{error}");
    std::fs::remove_file(&ballast).unwrap();
    load.until_accepted(20).await;
    let progress = load.end().await;
    rig.working.assert_nothing_is_lost(progress.accepted).await;
}

/// Leaves no room at all.
fn fill(ballast: &std::path::Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(ballast).unwrap();
    let piece = vec![1_u8; 64 * 1024];
    let full = loop {
        if let Err(error) = file.write_all(&piece) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
}
