//! Redriving: dead letters are tried again, once their cause is mended.

use super::handlers::Handlers;
use super::screen::Screen;
use super::supervise::Supervisor;
use mailslot::store::{Filter, RedriveSpec};
use mailslot::{Operator, Reason, Status};

/// Dead letters a second: slow enough to be seen.
pub(super) const RATE: u32 = 4;

/// Redrives the dead letters of a reason and lets a repaired worker handle them. Returns how many.
pub(super) async fn redrive(
    operator: &Operator,
    supervisor: &mut Supervisor,
    reason: Reason,
    screen: &mut Screen,
) -> anyhow::Result<u64> {
    let before = supervisor.tally().await?;
    let statuses = Some(vec![Status::DeadLettered]);
    let filter = Filter { reason: Some(reason), statuses, ..Filter::default() };
    let redrive = operator.redrive(RedriveSpec { filter, rate: RATE }).await?;
    screen.begin(redrive.total, "redriven and handled");
    let goal = before.completed + redrive.total;
    let done = |tally: super::supervise::Tally, screen: &mut Screen| {
        let done = tally.completed.saturating_sub(before.completed);
        screen.progress(done, "");
        tally.completed >= goal
    };
    supervisor.work(Handlers::Repaired, screen, done).await?;
    screen.end();
    Ok(redrive.total)
}
