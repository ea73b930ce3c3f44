//! Settlements of handoffs that come before their messages are suspended.

use crate::change::SettleHandoff;
use crate::leases::Settling;
use crate::link::{Param, Session};
use crate::moves;
use crate::operator::{Alteration, Outcome};
use crate::queries;
use async_trait::async_trait;
use mailslot_core::limits::HANDOFFS_KEPT_MAX;
use mailslot_core::moves::Moves;
use mailslot_core::store::HandoffResult;
use mailslot_core::stored::RowReader;
use mailslot_core::{ErrorText, MessageId, StoreError};
use std::time::Duration;

/// Keeps one. `false`: too many are kept.
pub(crate) struct Keep {
    pub(crate) id: MessageId,
    pub(crate) result: HandoffResult,
    pub(crate) duration: Duration,
    pub(crate) time: Param<'static>,
}

#[async_trait]
impl Alteration for Keep {
    const OPERATION: &'static str = "keep_handoff";

    type Answer = bool;

    async fn run(&self, session: &mut Session<'_>, _: &mut Moves) -> Outcome<bool> {
        let error = match &self.result {
            HandoffResult::Completed => None,
            HandoffResult::Failed(error) => Some(error.as_str()),
        };
        let params = vec![
            Param::Uuid(self.id.as_uuid()),
            Param::optional_text(error),
            self.time.clone(),
            Param::Int(Some(i64::try_from(self.duration.as_micros()).unwrap_or(i64::MAX / 2))),
            Param::Int(i64::try_from(HANDOFFS_KEPT_MAX).ok()),
        ];
        Ok((session.execute(queries::KEPT_HANDOFF_INSERT, params).await? > 0, Vec::new()))
    }
}

/// Settles those whose message is suspended by now.
pub(crate) struct ApplyKept {
    pub(crate) limit: usize,
    pub(crate) time: Param<'static>,
}

#[async_trait]
impl Alteration for ApplyKept {
    const OPERATION: &'static str = "apply_kept_handoffs";

    type Answer = u64;

    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<u64> {
        let (mut settled, mut promoted) = (0, Vec::new());
        for (id, result) in find(session, self.time.clone(), self.limit).await? {
            let (done, handed_on) = SettleHandoff { id, result }.run(session, moves).await?;
            settled += u64::from(done);
            promoted.extend(handed_on);
            promoted.extend(moves::write(session, moves, &Settling::default()).await?);
            session.execute(queries::KEPT_HANDOFF_DELETE, vec![Param::Uuid(id.as_uuid())]).await?;
        }
        Ok((settled, promoted))
    }
}

/// Those whose message is suspended, and those that were kept for long enough.
pub(crate) async fn find(
    session: &mut Session<'_>,
    time: Param<'static>,
    limit: usize,
) -> Result<Vec<(MessageId, HandoffResult)>, StoreError> {
    let params = vec![time, Param::Int(i64::try_from(limit).ok())];
    let rows = session.rows(queries::KEPT_HANDOFF_FIND, params).await?;
    let read = |row| {
        let mut reader = RowReader::new(row);
        let id = reader.other_id(0)?;
        let error = reader.text(1, "error").map(ErrorText::new);
        Some((id, error.map_or(HandoffResult::Completed, HandoffResult::Failed)))
    };
    Ok(rows.iter().filter_map(read).collect())
}
