//! Paced redrive: requeueing many dead letters without burying the workers.

use super::filter::Filter;
use crate::field::FieldError;
use crate::limits::CHANGE_BATCH_MAX;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Most messages a second that a redrive may ask for.
pub const REDRIVE_RATE_MAX: u32 = 100_000;

/// The number of a redrive within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RedriveId(pub i64);

impl fmt::Display for RedriveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RedriveId {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        text.parse()
            .map(Self)
            .map_err(|_| FieldError::new("redrive", "is not a number", "list them to see theirs"))
    }
}

/// What to redrive and how fast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedriveSpec {
    /// Which dead letters. States in it are ignored: a redrive takes dead letters only.
    pub filter: Filter,
    /// How many messages a second, 1 to [`REDRIVE_RATE_MAX`].
    pub rate: u32,
}

impl RedriveSpec {
    /// Checks the bounds.
    ///
    /// # Errors
    /// A rate out of bounds.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.rate == 0 || self.rate > REDRIVE_RATE_MAX {
            let fix = format!("use 1 to {REDRIVE_RATE_MAX} messages a second; pause a redrive to stop it");
            return Err(FieldError::new("redrive.rate", format!("is {}", self.rate), fix));
        }
        Ok(())
    }
}

/// A redrive and how far it came. It ends when it has passed every message that was accepted before it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redrive {
    /// Its number.
    pub id: RedriveId,
    /// What was asked for.
    pub spec: RedriveSpec,
    /// Where it stands.
    pub state: RedriveState,
    /// How many messages matched when it began.
    pub total: u64,
    /// How many it requeued.
    pub requeued: u64,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last moved.
    pub updated_at: Timestamp,
}

/// Where a redrive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedriveState {
    /// It requeues at its rate.
    Running,
    /// It waits for a resume.
    Paused,
    /// It ended early.
    Cancelled,
    /// It passed everything.
    Done,
}

crate::state::labels!(RedriveState, "redrive.state" {
    Running => "running", Paused => "paused", Cancelled => "cancelled", Done => "done",
});

/// What can be done to a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedriveAction {
    /// Stop for now.
    Pause,
    /// Go on.
    Resume,
    /// Stop for good; what was requeued stays requeued.
    Cancel,
}

impl RedriveState {
    /// Where an action leads. An action that cannot apply changes nothing.
    pub fn on(self, action: RedriveAction) -> Self {
        match (self, action) {
            (Self::Running, RedriveAction::Pause) => Self::Paused,
            (Self::Paused, RedriveAction::Resume) => Self::Running,
            (Self::Running | Self::Paused, RedriveAction::Cancel) => Self::Cancelled,
            (state, _) => state,
        }
    }
}

/// How many messages a redrive may requeue at `now`, if it last moved at `moved_at`, up to `max`.
///
/// The first step of a redrive counts as one second, so that a slow one begins at once; so does the first after the
/// clock was moved back, so that it does not wait for the clock to catch up.
pub fn redrive_allowance(rate: u32, moved_at: Timestamp, now: Timestamp, first: bool, max: usize) -> usize {
    let one_second = first || now < moved_at;
    let elapsed = if one_second { SignedDuration::from_secs(1) } else { now.duration_since(moved_at) };
    let due = elapsed.as_micros().max(0).saturating_mul(i128::from(rate)) / 1_000_000;
    usize::try_from(due).unwrap_or(max).min(max)
}

/// A redrive with the stretch of acceptance order that it still has to walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedriveWalk {
    /// The redrive.
    pub redrive: Redrive,
    /// The last place that it passed.
    pub passed: i64,
    /// The last place that it will look at: what is accepted later is none of its business.
    pub last: i64,
}

impl RedriveWalk {
    /// A new one, over `total` dead letters up to `last`.
    pub fn new(id: RedriveId, spec: RedriveSpec, total: u64, last: i64, now: Timestamp) -> Self {
        let state = RedriveState::Running;
        let redrive = Redrive { id, spec, state, total, requeued: 0, created_at: now, updated_at: now };
        Self { redrive, passed: 0, last }
    }

    /// Where it looks for the next dead letters: after the one place, up to the other.
    pub fn stretch(&self) -> (i64, i64) {
        (self.passed, self.last)
    }

    /// How many messages it may requeue now.
    pub fn allowance(&self, now: Timestamp) -> usize {
        let Redrive { spec, requeued, created_at, updated_at, .. } = &self.redrive;
        let first = updated_at == created_at && *requeued == 0;
        redrive_allowance(spec.rate, *updated_at, now, first, CHANGE_BATCH_MAX)
    }

    /// Goes on after these were requeued, of which it looked for as many as were `allowed`: fewer mean the end.
    pub fn advance(&mut self, requeued: &[i64], allowed: usize, now: Timestamp) {
        self.redrive.requeued += requeued.len() as u64;
        self.redrive.updated_at = now;
        if requeued.len() < allowed {
            self.redrive.state = RedriveState::Done;
        }
        self.passed = requeued.last().copied().unwrap_or(self.passed);
    }

    /// Pauses, resumes or cancels it. `false`: that changes nothing.
    pub fn act(&mut self, action: RedriveAction, now: Timestamp) -> bool {
        let state = self.redrive.state.on(action);
        let changes = state != self.redrive.state;
        if changes {
            self.redrive.state = state;
            self.redrive.updated_at = now;
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_when_it_finds_fewer_than_it_may_requeue() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let spec = RedriveSpec { filter: Filter::default(), rate: 2 };
        let mut walk = RedriveWalk::new(RedriveId(1), spec, 3, 50, at(0));
        assert_eq!((walk.allowance(at(0)), walk.stretch()), (2, (0, 50)));
        walk.advance(&[10, 20], 2, at(0));
        assert_eq!((walk.redrive.state, walk.stretch()), (RedriveState::Running, (20, 50)));
        assert_eq!((walk.allowance(at(0)), walk.allowance(at(1))), (0, 2));
        walk.advance(&[30], 2, at(1));
        assert_eq!((walk.redrive.state, walk.redrive.requeued), (RedriveState::Done, 3));
        walk.advance(&[], 2, at(2));
        assert_eq!(walk.passed, 30);
    }

    #[test]
    fn an_action_without_effect_does_not_count_as_a_move() {
        let spec = RedriveSpec { filter: Filter::default(), rate: 2 };
        let mut walk = RedriveWalk::new(RedriveId(1), spec, 3, 50, Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(5).unwrap();
        assert!(!walk.act(RedriveAction::Resume, later) && walk.redrive.updated_at < later);
        assert!(walk.act(RedriveAction::Pause, later) && walk.redrive.updated_at == later);
    }

    #[test]
    fn the_allowance_follows_the_rate() {
        let start = Timestamp::from_second(1_000).unwrap();
        let at = |millis| start.saturating_add(SignedDuration::from_millis(millis)).unwrap();
        assert_eq!(redrive_allowance(10, start, at(0), true, 1000), 10);
        assert_eq!(redrive_allowance(10, start, at(99), false, 1000), 0);
        assert_eq!(redrive_allowance(10, start, at(250), false, 1000), 2);
        assert_eq!(redrive_allowance(10, start, at(3_600_000), false, 1000), 1000);
        assert_eq!(redrive_allowance(10, start, at(-5_000), false, 1000), 10);
    }

    #[test]
    fn actions_change_only_what_is_not_over() {
        use RedriveAction::{Cancel, Pause, Resume};
        use RedriveState::{Cancelled, Done, Paused, Running};
        let table = [
            (Running, [Paused, Running, Cancelled]),
            (Paused, [Paused, Running, Cancelled]),
            (Cancelled, [Cancelled; 3]),
            (Done, [Done; 3]),
        ];
        for (state, expected) in table {
            assert_eq!([Pause, Resume, Cancel].map(|action| state.on(action)), expected);
        }
    }
}
