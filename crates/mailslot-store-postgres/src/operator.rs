//! The operator's side of the store: it opens transactions and maps calls to them.
//!
//! Operators change messages one after the other, under a lock of the schema, and maintenance does nothing while
//! somebody else holds it. Workers know nothing of that lock: where one of them was faster, the change begins anew.

use crate::append::RACES_MAX;
use crate::check::Check;
use crate::connection::{Lent, no_answer};
use crate::error::is_race;
use crate::leases::Settling;
use crate::link::{Param, Session};
use crate::moves::{self, Overtaken, Promoted};
use crate::queries;
use crate::retire::Retired;
use crate::store::PostgresStore;
use crate::{change, check, kept, migrate, redrive, retain, view};
use async_trait::async_trait;
use mailslot_core::moves::Moves;
use mailslot_core::store::{
    Change, Changed, Count, Filter, HandoffResult, LeaseRecord, MessageDetail, MessageRecord, Page,
    PageRequest, Redrive, RedriveAction, RedriveId, RedriveSpec, RetentionPolicy, SchemaInfo, SessionRecord,
    Violation,
};
use mailslot_core::stored::{instant, waiting_since};
use mailslot_core::{EndpointName, MessageId, OperatorStore, StoreError};
use std::error::Error as _;
use std::time::Duration;

/// Something that operators or maintenance change in one transaction.
#[async_trait]
pub(crate) trait Alteration: Send + Sync {
    /// The store's method.
    const OPERATION: &'static str;

    type Answer: Send;

    /// Gives the answer, and the sessions that it has handed on. What it gathers is written afterwards.
    async fn run(&self, session: &mut Session<'_>, moves: &mut Moves) -> Outcome<Self::Answer>;
}

/// What an [`Alteration`] gives.
pub(crate) type Outcome<T> = Result<(T, Vec<Promoted>), StoreError>;

/// Runs a read in a transaction that sees one state of the data. A macro, and no function that takes an async closure:
/// the compiler cannot prove yet that the future of one that borrows its parameter is `Send`.
macro_rules! read {
    ($store:ident, $operation:expr, $by:expr, |$session:ident| $read:expr) => {
        $store
            .bounded($operation, $by, async {
                let mut lent = $store.begin_reading($operation, $by).await?;
                let answer = {
                    let mut link = lent.link();
                    let $session = &mut $store.shared.session(&mut link, $operation);
                    $read.await
                };
                end(lent, answer).await
            })
            .await
    };
}

/// Whether a change waits for the lock of all changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// An operator does.
    Wait,
    /// Maintenance does not: whoever holds it may be at the same work, and the next round is soon.
    Try,
}

/// What the statements of a transaction go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Keys.
    Keys,
    /// Times, which only a BRIN index knows.
    Times,
    /// They read everything there is, and may take their time.
    Everything,
}

/// For how long a statement may take that reads everything. A store of ten million messages takes seconds.
const EVERYTHING_TIMEOUT: Duration = Duration::from_secs(600);

impl PostgresStore {
    async fn bounded<T>(
        &self,
        operation: &'static str,
        by: By,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if by != By::Everything {
            return self.within(operation, call).await;
        }
        // The server ends the statement; this is for a server that is gone. A repair has a few statements.
        tokio::time::timeout(EVERYTHING_TIMEOUT * 6, call).await.map_err(|_| no_answer(operation))?
    }

    /// Begins a transaction that sees one state of the data.
    async fn begin_reading(&self, operation: &'static str, by: By) -> Result<Lent, StoreError> {
        let mut lent = self.shared.free.begin(operation).await?;
        let mut link = lent.link();
        let mut session = self.shared.session(&mut link, operation);
        session.execute(queries::OPERATOR_READ, vec![]).await?;
        plan(&mut session, by).await?;
        Ok(lent)
    }

    /// Changes data as an operator.
    async fn operate<A: Alteration>(&self, by: By, alteration: A) -> Result<A::Answer, StoreError> {
        let answer = self.alter(Lock::Wait, by, &alteration).await?;
        Ok(answer.expect("whoever waits for the lock gets it"))
    }

    /// Changes data under the lock; begins anew where a worker was faster. `None`: somebody else holds the lock.
    async fn alter<A: Alteration>(
        &self,
        lock: Lock,
        by: By,
        alteration: &A,
    ) -> Result<Option<A::Answer>, StoreError> {
        self.bounded(A::OPERATION, by, async {
            let mut tries = 1;
            loop {
                match self.try_to_alter(lock, by, alteration).await {
                    Err(error) if tries < RACES_MAX && may_succeed_now(&error) => tries += 1,
                    answer => return answer,
                }
            }
        })
        .await
    }

    async fn try_to_alter<A: Alteration>(
        &self,
        lock: Lock,
        by: By,
        alteration: &A,
    ) -> Result<Option<A::Answer>, StoreError> {
        let mut lent = self.shared.free.begin(A::OPERATION).await?;
        let altered = {
            let mut link = lent.link();
            let mut session = self.shared.session(&mut link, A::OPERATION);
            plan(&mut session, by).await?;
            alter_under(lock, &mut session, self.time(), alteration).await
        };
        let Some(Altered { answer, moves, promoted }) = end(lent, altered).await? else { return Ok(None) };
        self.lower(&promoted);
        if moves.woke() {
            self.wake();
        }
        Ok(Some(answer))
    }

    async fn examine(&self, invariant: Check) -> Result<Option<Violation>, StoreError> {
        read!(self, CHECK, By::Everything, |session| check::run(session, invariant))
    }
}

/// A change that is not committed yet.
struct Altered<T> {
    answer: T,
    moves: Moves,
    promoted: Vec<Promoted>,
}

async fn alter_under<A: Alteration>(
    lock: Lock,
    session: &mut Session<'_>,
    time: Param<'static>,
    alteration: &A,
) -> Result<Option<Altered<A::Answer>>, StoreError> {
    let taken = match lock {
        Lock::Wait => session.row(queries::OPERATOR_LOCK, vec![]).await.map(|_| true)?,
        Lock::Try => session.row(queries::OPERATOR_TRY_LOCK, vec![]).await?.int(0) != 0,
    };
    if !taken {
        return Ok(None);
    }
    let now = instant(session.row(queries::CLOCK_READ, vec![time]).await?.int(0));
    let mut moves = Moves::at(now);
    let (answer, mut promoted) = alteration.run(session, &mut moves).await?;
    promoted.extend(moves::finish(session, &mut moves, &Settling::default()).await?);
    Ok(Some(Altered { answer, moves, promoted }))
}

/// Lets a transaction be planned for what its statements go by.
async fn plan(session: &mut Session<'_>, by: By) -> Result<(), StoreError> {
    let millis = EVERYTHING_TIMEOUT.as_millis().to_string();
    let (query, param) = match by {
        By::Keys => (queries::OPERATOR_PIN, "off"),
        By::Times => (queries::OPERATOR_PIN, "on"),
        By::Everything => (queries::OPERATOR_TAKE_TIME, millis.as_str()),
    };
    session.row(query, vec![Param::text(param)]).await.map(|_| ())
}

/// Lets a transaction be planned for looking at whole partitions.
pub(crate) async fn plan_anew(session: &mut Session<'_>) -> Result<(), StoreError> {
    session.row(queries::OPERATOR_PLAN_ANEW, vec![]).await.map(|_| ())
}

/// Commits, or rolls back what failed. A connection that cannot be rolled back is closed.
pub(crate) async fn end<T>(lent: Lent, answer: Result<T, StoreError>) -> Result<T, StoreError> {
    match answer {
        Ok(value) => lent.finish().await.map(|()| value),
        Err(error) => {
            if let Err(broken) = lent.roll_back().await {
                tracing::debug!(error = %broken, "a connection was closed");
            }
            Err(error)
        }
    }
}

fn may_succeed_now(error: &StoreError) -> bool {
    is_race(error) || error.source().is_some_and(<dyn std::error::Error>::is::<Overtaken>)
}

const CHECK: &str = "check";

const STEP: &str = redrive::Step::OPERATION;

#[async_trait]
impl OperatorStore for PostgresStore {
    async fn query(&self, filter: &Filter, page: &PageRequest) -> Result<Page<MessageRecord>, StoreError> {
        page.check()?;
        read!(self, "query", By::Keys, |session| view::query(session, filter, page))
    }

    async fn get(&self, id: MessageId) -> Result<Vec<MessageDetail>, StoreError> {
        read!(self, "get", By::Keys, |session| view::get(session, id))
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        read!(self, "counts", By::Keys, |session| view::counts(session))
    }

    async fn oldest_due(&self, endpoint: &EndpointName) -> Result<Option<Duration>, StoreError> {
        // With a clock of a test's own, nothing may be passed over.
        let hints = self.shared.options.clock.is_none().then_some(&self.shared.hints);
        let time = self.time();
        let (due_at, now) =
            read!(self, "oldest_due", By::Keys, |session| view::oldest_due(session, endpoint, hints, time))?;
        Ok(waiting_since(due_at, now))
    }

    async fn change(&self, change: Change, filter: &Filter, limit: usize) -> Result<Changed, StoreError> {
        self.operate(By::Keys, change::Apply { change, filter, limit }).await
    }

    async fn settle_handoff(&self, id: MessageId, result: HandoffResult) -> Result<bool, StoreError> {
        self.operate(By::Keys, change::SettleHandoff { id, result }).await
    }

    async fn keep_handoff(
        &self,
        id: MessageId,
        result: HandoffResult,
        keep_for: Duration,
    ) -> Result<bool, StoreError> {
        self.operate(By::Keys, kept::Keep { id, result, duration: keep_for, time: self.time() }).await
    }

    async fn apply_kept_handoffs(&self, limit: usize) -> Result<u64, StoreError> {
        // Almost always there are none, which is seen without any lock.
        let time = self.time();
        let first =
            read!(self, kept::ApplyKept::OPERATION, By::Keys, |session| kept::find(session, time, 1))?;
        if first.is_empty() {
            return Ok(0);
        }
        let apply = kept::ApplyKept { limit, time: self.time() };
        Ok(self.alter(Lock::Try, By::Keys, &apply).await?.unwrap_or_default())
    }

    async fn sessions(&self, blocked_only: bool, limit: usize) -> Result<Vec<SessionRecord>, StoreError> {
        read!(self, "sessions", By::Keys, |session| view::sessions(session, blocked_only, limit))
    }

    async fn leases(&self, limit: usize) -> Result<Vec<LeaseRecord>, StoreError> {
        read!(self, "leases", By::Keys, |session| view::leases(session, limit))
    }

    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let retired = match endpoint {
            None => self.bounded(retain::Retain::OPERATION, By::Everything, self.retire(policy)).await?,
            Some(_) => Retired::default(),
        };
        let Retired { messages, waiting } = retired;
        let retain = retain::Retain { walks: &self.shared.walks, waiting, endpoint, policy, limit };
        Ok(messages + self.alter(Lock::Try, By::Times, &retain).await?.unwrap_or_default().changed)
    }

    async fn create_redrive(&self, spec: RedriveSpec) -> Result<Redrive, StoreError> {
        spec.check()?;
        self.operate(By::Keys, redrive::Create { spec }).await
    }

    async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        read!(self, "redrives", By::Keys, |session| redrive::list(session))
    }

    async fn act_on_redrive(
        &self,
        id: RedriveId,
        action: RedriveAction,
    ) -> Result<Option<Redrive>, StoreError> {
        self.operate(By::Keys, redrive::Act { id, action }).await
    }

    async fn step_redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        let any_running: Result<_, StoreError> =
            read!(self, STEP, By::Keys, |session| redrive::is_any_running(session));
        if !any_running? {
            return Ok(Vec::new());
        }
        Ok(self.alter(Lock::Try, By::Keys, &redrive::Step).await?.unwrap_or_default())
    }

    async fn schema(&self) -> Result<SchemaInfo, StoreError> {
        let found: Result<_, StoreError> =
            read!(self, "schema", By::Keys, |session| migrate::version(session));
        Ok(SchemaInfo { backend: "postgres", found: found?, wanted: migrate::WANTED })
    }

    async fn check(&self) -> Result<Vec<Violation>, StoreError> {
        let schema = &self.shared.options.schema;
        let drift: Result<_, StoreError> =
            read!(self, CHECK, By::Keys, |session| check::schema(session, schema));
        let mut found: Vec<_> = drift?.into_iter().collect();
        for invariant in check::CHECKS {
            found.extend(self.examine(*invariant).await?);
        }
        Ok(found)
    }

    async fn repair(&self) -> Result<Vec<Violation>, StoreError> {
        self.operate(By::Everything, check::Repair).await
    }
}
