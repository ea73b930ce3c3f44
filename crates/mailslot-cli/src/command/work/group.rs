//! Process groups: each command leads one, so that all that it started can be killed with it.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::process::Child;

/// The groups that run now, for an end without order.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The group of a child; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    /// The group that a child was made the leader of.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        running().extend(id);
        Self { leader: id.and_then(Pid::from_raw) }
    }

    /// Kills everyone in it, now. Call it at once after the leader was reaped: its number stays taken as long as the
    /// group has members, and may be given away when it has none.
    pub(super) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(leader) = self.leader.take() else { return };
        running().remove(&leader.as_raw_nonzero().get());
        kill(leader);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

fn kill(leader: Pid) {
    // A group that has ended needs no killing.
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Kills every group that runs.
pub(super) fn kill_all() {
    running().iter().copied().filter_map(Pid::from_raw).for_each(kill);
}
