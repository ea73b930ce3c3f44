//! Settlements of handoffs that come before their messages are suspended.

use crate::change;
use crate::error::During;
use crate::moves;
use crate::queries;
use crate::row::Row;
use crate::store::SqliteStore;
use mailslot_core::limits::HANDOFFS_KEPT_MAX;
use mailslot_core::moves::Moves;
use mailslot_core::store::HandoffResult;
use mailslot_core::stored::{RowReader, later, micros};
use mailslot_core::{ErrorText, MessageId, StoreError};
use sqlx::SqliteConnection;
use std::time::Duration;

impl SqliteStore {
    pub(crate) async fn keep(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError> {
        const OPERATION: &str = "keep_handoff";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let error = match result {
            HandoffResult::Completed => None,
            HandoffResult::Failed(error) => Some(error),
        };
        let insert = sqlx::query(queries::KEPT_HANDOFF_INSERT)
            .bind(id.as_uuid().as_bytes().to_vec())
            .bind(error.as_ref().map(ErrorText::as_str))
            .bind(micros(later(self.now(), keep_for)))
            .bind(i64::try_from(HANDOFFS_KEPT_MAX).unwrap_or(i64::MAX));
        let kept = insert.execute(&mut *tx).await.during(OPERATION)?.rows_affected() > 0;
        tx.commit().await.during(OPERATION)?;
        Ok(kept)
    }

    pub(crate) async fn apply_kept(&self, limit: usize) -> Result<u64, StoreError> {
        const OPERATION: &str = "apply_kept_handoffs";
        let now = self.now();
        // Almost always there are none, which is seen without the turn of a writer.
        let mut tx = self.read(OPERATION).await?;
        if find(&mut tx, now, 1, OPERATION).await?.is_empty() {
            return Ok(0);
        }
        drop(tx);
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let mut settled = 0;
        for (id, result) in find(&mut tx, now, limit, OPERATION).await? {
            let mut moves = Moves::at(now);
            settled += u64::from(change::settle_handoff(&mut tx, id, result, &mut moves).await?);
            moves::finish(&mut moves, &mut tx, OPERATION).await?;
            let delete = sqlx::query(queries::KEPT_HANDOFF_DELETE).bind(id.as_uuid().as_bytes().to_vec());
            delete.execute(&mut *tx).await.during(OPERATION)?;
        }
        tx.commit().await.during(OPERATION)?;
        if settled > 0 {
            self.wake();
        }
        Ok(settled)
    }
}

async fn find(
    db: &mut SqliteConnection,
    now: jiff::Timestamp,
    limit: usize,
    operation: &'static str,
) -> Result<Vec<(MessageId, HandoffResult)>, StoreError> {
    let find = sqlx::query(queries::KEPT_HANDOFF_FIND)
        .bind(micros(now))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = find.fetch_all(db).await.during(operation)?;
    let read = |row| {
        let row = Row(row);
        let mut reader = RowReader::new(&row);
        let id = reader.other_id(0)?;
        let error = reader.text(1, "error").map(ErrorText::new);
        Some((id, error.map_or(HandoffResult::Completed, HandoffResult::Failed)))
    };
    Ok(rows.iter().filter_map(read).collect())
}
