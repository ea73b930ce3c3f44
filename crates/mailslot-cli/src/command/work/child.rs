//! Running a child process so that it cannot hang the worker, and nothing that it started outlives it.

use super::group::Group;
use super::tail::{Tail, discard, keep_end};
use mailslot::limits::ERROR_BYTES_MAX;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, Command};

/// How long the pipes may stay open after the end of the group: only a process that left the group holds them then.
const PIPES_GRACE: Duration = Duration::from_millis(500);

/// How a child ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It was told to stop.
    Stopped,
    /// It ran too long.
    TimedOut,
}

/// How it ended, and the end of what it wrote to standard error.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) stderr: Vec<u8>,
}

/// Runs `command` with `input`, and kills its process group when it ends, when `stop` is ready, when it runs past
/// `limit`, and when the future is dropped.
///
/// Both outputs are read all the time, so that a child that writes much is never held up; input that it does not
/// read is let go.
pub(super) async fn run(
    mut command: Command,
    input: bytes::Bytes,
    stop: impl Future<Output = ()>,
    limit: Option<Duration>,
) -> std::io::Result<Ended> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let tail = Arc::new(Tail::new(ERROR_BYTES_MAX));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let pipes = async { tokio::join!(feed(stdin, &input), discard(stdout), keep_end(stderr, &tail)) };
    let (mut pipes, mut stop, mut limit) = (pin!(pipes), pin!(stop), pin!(after(limit)));
    let mut are_done = false;
    let end = loop {
        tokio::select! {
            biased;
            status = child.wait() => break End::Exited(status?),
            () = &mut stop => break End::Stopped,
            () = &mut limit => break End::TimedOut,
            _ = &mut pipes, if !are_done => are_done = true,
        }
    };
    group.kill();
    if !matches!(end, End::Exited(_)) {
        child.wait().await?;
    }
    if !are_done {
        // What the child wrote before its end is still in the pipes.
        let _ = tokio::time::timeout(PIPES_GRACE, pipes).await;
    }
    Ok(Ended { end, stderr: tail.bytes() })
}

async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Writes the input and closes the pipe. A child may read as little of it as it likes.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    let Some(mut stdin) = stdin else { return };
    let _ = stdin.write_all(input).await;
}
