//! Paced redrives: dead letters go back in acceptance order, as many as the rate allows.

use crate::change::requeue_all;
use crate::error::During;
use crate::leases::Settling;
use crate::link::{Param, Session};
use crate::moves;
use crate::operator::{Alteration, Outcome};
use crate::queries;
use crate::select::find;
use async_trait::async_trait;
use mailslot_core::StoreError;
use mailslot_core::moves::Moves;
use mailslot_core::store::{
    Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState, RedriveWalk, Selection,
};
use mailslot_core::stored::{RowReader, micros};

/// Starts a redrive.
pub(crate) struct Create {
    pub(crate) spec: RedriveSpec,
}

#[async_trait]
impl Alteration for Create {
    const OPERATION: &'static str = "create_redrive";

    type Answer = Redrive;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Redrive> {
        let last = session.row(queries::MESSAGE_FIND_LAST, vec![]).await?.int(0);
        let all = Selection::dead_letters(&self.spec.filter, (0, last), usize::MAX);
        let total = find(session, &all).await?.len() as u64;
        // Numbered by the insert.
        let walk = RedriveWalk::new(RedriveId(0), self.spec.clone(), total, last, moves.now());
        Ok((insert(session, walk).await?, Vec::new()))
    }
}

async fn insert(session: &mut Session<'_>, walk: RedriveWalk) -> Result<Redrive, StoreError> {
    let RedriveWalk { mut redrive, last, .. } = walk;
    let filter = serde_json::to_string(&redrive.spec.filter).during(session.operation)?;
    let params = vec![
        Param::text(&filter),
        Param::Int(Some(i64::from(redrive.spec.rate))),
        Param::text(redrive.state.as_str()),
        number(redrive.total),
        Param::Int(Some(micros(redrive.created_at))),
        Param::Int(Some(last)),
    ];
    redrive.id = RedriveId(session.row(queries::REDRIVE_INSERT, params).await?.int(0));
    Ok(redrive)
}

fn number(count: u64) -> Param<'static> {
    Param::Int(Some(i64::try_from(count).unwrap_or(i64::MAX)))
}

async fn walks(
    session: &mut Session<'_>,
    state: Option<RedriveState>,
    id: Option<RedriveId>,
) -> Result<Vec<RedriveWalk>, StoreError> {
    let operation = session.operation;
    let params = vec![Param::optional_text(state.map(RedriveState::as_str)), Param::Int(id.map(|id| id.0))];
    let rows = session.rows(queries::REDRIVE_LIST, params).await?;
    rows.iter().map(|row| RowReader::new(row).redrive(operation)).collect()
}

/// Every redrive, newest first.
pub(crate) async fn list(session: &mut Session<'_>) -> Result<Vec<Redrive>, StoreError> {
    Ok(walks(session, None, None).await?.into_iter().map(|walk| walk.redrive).collect())
}

/// Pauses, resumes or cancels one.
pub(crate) struct Act {
    pub(crate) id: RedriveId,
    pub(crate) action: RedriveAction,
}

#[async_trait]
impl Alteration for Act {
    const OPERATION: &'static str = "act_on_redrive";

    type Answer = Option<Redrive>;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Option<Redrive>> {
        let found = walks(session, None, Some(self.id)).await?.pop();
        let Some(mut walk) = found else { return Ok((None, Vec::new())) };
        if walk.act(self.action, moves.now()) {
            update(session, &walk).await?;
        }
        Ok((Some(walk.redrive), Vec::new()))
    }
}

async fn update(session: &mut Session<'_>, walk: &RedriveWalk) -> Result<(), StoreError> {
    let redrive = &walk.redrive;
    let params = vec![
        Param::Int(Some(redrive.id.0)),
        Param::text(redrive.state.as_str()),
        number(redrive.requeued),
        Param::Int(Some(micros(redrive.updated_at))),
        Param::Int(Some(walk.passed)),
    ];
    session.execute(queries::REDRIVE_UPDATE, params).await.map(|_| ())
}

/// Whether a step could do anything: asked without the lock.
pub(crate) async fn is_any_running(session: &mut Session<'_>) -> Result<bool, StoreError> {
    Ok(!walks(session, Some(RedriveState::Running), None).await?.is_empty())
}

/// Advances every running redrive, oldest first.
pub(crate) struct Step;

#[async_trait]
impl Alteration for Step {
    const OPERATION: &'static str = "step_redrives";

    type Answer = Vec<Redrive>;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Vec<Redrive>> {
        let now = moves.now();
        let mut stepped = Vec::new();
        for mut walk in walks(session, Some(RedriveState::Running), None).await?.into_iter().rev() {
            let allowed = walk.allowance(now);
            if allowed == 0 {
                continue;
            }
            let next = Selection::dead_letters(&walk.redrive.spec.filter, walk.stretch(), allowed);
            let seqs = find(session, &next).await?;
            requeue_all(session, &seqs, moves).await?;
            // Written before the next redrive looks, which may match the same messages.
            moves::write(session, moves, &Settling::default()).await?;
            walk.advance(&seqs, allowed, now);
            update(session, &walk).await?;
            stepped.push(walk.redrive);
        }
        Ok((stepped, Vec::new()))
    }
}
