//! The operator's side of the store: it opens transactions and maps calls to them.

use crate::error::During;
use crate::moves;
use crate::store::SqliteStore;
use crate::{change, check, migrate, redrive, retain, view};
use async_trait::async_trait;
use mailslot_core::moves::Moves;
use mailslot_core::store::{
    Change, Changed, Count, Filter, HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page,
    PageRequest, Redrive, RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord,
    Violation,
};
use mailslot_core::stored::waiting_since;
use mailslot_core::{EndpointName, MessageId, OperatorStore, StoreError};

use std::time::Duration;

#[async_trait]
impl OperatorStore for SqliteStore {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        page.check()?;
        view::query(&mut *self.read("query").await?, filter, page).await
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        view::get(&mut *self.read("get").await?, id).await
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        view::counts(&mut *self.read("counts").await?).await
    }

    async fn oldest_due(&self, endpoint: &EndpointName) -> Result<Option<Duration>, StoreError> {
        let due_at = view::oldest_due(&mut *self.read("oldest_due").await?, endpoint).await?;
        Ok(waiting_since(due_at, self.now()))
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        let mut turn = self.shared.writer.turn("change").await?;
        let mut tx = turn.begin("change").await?;
        let mut moves = Moves::at(self.now());
        let changed = change::change(&mut tx, change, filter, limit, &mut moves).await?;
        moves::finish(&mut moves, &mut tx, "change").await?;
        tx.commit().await.during("change")?;
        if moves.woke() {
            self.wake();
        }
        Ok(changed)
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        const OPERATION: &str = "settle_handoff";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let mut moves = Moves::at(self.now());
        let settled = change::settle_handoff(&mut tx, id, result, &mut moves).await?;
        moves::finish(&mut moves, &mut tx, OPERATION).await?;
        tx.commit().await.during(OPERATION)?;
        if moves.woke() {
            self.wake();
        }
        Ok(settled)
    }

    async fn keep_handoff(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError> {
        self.keep(id, result, keep_for).await
    }

    async fn apply_kept_handoffs(&self, limit: usize) -> Result<u64, StoreError> {
        self.apply_kept(limit).await
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        view::sessions(&mut *self.read("sessions").await?, blocked_only, limit).await
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        view::leases(&mut *self.read("leases").await?, limit).await
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        const OPERATION: &str = "retain";
        let now = self.now();
        let mut tx = self.read(OPERATION).await?;
        if retain::find(&mut tx, endpoint, policy, 1, now).await?.is_empty() {
            return Ok(0);
        }
        drop(tx);
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let seqs = retain::find(&mut tx, endpoint, policy, limit, now).await?;
        let mut moves = Moves::at(now);
        change::delete(&mut tx, &seqs, &mut moves, OPERATION).await?;
        moves::finish(&mut moves, &mut tx, OPERATION).await?;
        tx.commit().await.during(OPERATION)?;
        if moves.woke() {
            self.wake();
        }
        Ok(seqs.len() as u64)
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        spec.check()?;
        let mut turn = self.shared.writer.turn("create_redrive").await?;
        let mut tx = turn.begin("create_redrive").await?;
        let redrive = redrive::create(&mut tx, spec, self.now()).await?;
        tx.commit().await.during("create_redrive")?;
        Ok(redrive)
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        redrive::list(&mut *self.read("redrives").await?).await
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        const OPERATION: &str = "act_on_redrive";
        let mut turn = self.shared.writer.turn(OPERATION).await?;
        let mut tx = turn.begin(OPERATION).await?;
        let redrive = redrive::act(&mut tx, id, action, self.now()).await?;
        tx.commit().await.during(OPERATION)?;
        Ok(redrive)
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        if !redrive::is_any_running(&mut *self.read(redrive::STEP).await?).await? {
            return Ok(Vec::new());
        }
        let mut turn = self.shared.writer.turn(redrive::STEP).await?;
        let mut tx = turn.begin(redrive::STEP).await?;
        let now = self.now();
        let mut moves = Moves::at(now);
        let stepped = redrive::step(&mut tx, now, &mut moves).await?;
        moves::finish(&mut moves, &mut tx, redrive::STEP).await?;
        tx.commit().await.during(redrive::STEP)?;
        if moves.woke() {
            self.wake();
        }
        Ok(stepped)
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        let found = migrate::version(&mut *self.read("schema").await?).await?;
        Ok(SchemaInfo { backend: "sqlite", found, wanted: migrate::WANTED })
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        check::check(&mut *self.read("check").await?).await
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        let mut turn = self.shared.writer.turn("repair").await?;
        let mut tx = turn.begin("repair").await?;
        let mut moves = Moves::at(self.now());
        let repaired = check::repair(&mut tx, &mut moves).await?;
        tx.commit().await.during("repair")?;
        if moves.woke() {
            self.wake();
        }
        Ok(repaired)
    }
}
