//! The inbox in the application's own transactions: accepts that commit with its changes, and handlers whose changes
//! commit with their completion.

use crate::accept;
use crate::append::{self, RACES_MAX};
use crate::connection::{Lent, bounds_millis};
use crate::delivery::record_once;
use crate::error::{During, is_missing_partition};
use crate::keeper;
use crate::lanes;
use crate::leases::Settling;
use crate::link::{Link, Param, Session};
use crate::link_sqlx::SqlxLink;
use crate::moves;
use crate::queries;
use crate::settle;
use crate::store::PostgresStore;
use async_trait::async_trait;
use mailslot_core::handler::{Context, EnlistedTransaction, Extensions, FromMessageParts, HandlerError};
use mailslot_core::moves::Moves;
use mailslot_core::store::{AppendGroup, Appended, Concluded, Settled};
use mailslot_core::stored::{LaneCache, instant};
use mailslot_core::{
    AppendIn, DeliveryIdentity, FieldError, NewMessage, Settlement, StoreError, StoreErrorKind,
};
use sqlx::postgres::PgConnection;
use sqlx::{Executor as _, SqlStr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

const APPEND_IN: &str = "append_in";

/// Undoes a try of an accept, and nothing of the caller's.
const TAKE_BACK: &str = "ROLLBACK TO SAVEPOINT mailslot";

impl PostgresStore {
    /// Accepts messages in the caller's own transaction: they are there if and when it commits, and the receipts count
    /// from then. A message that is known is answered as always, and the transaction goes on.
    ///
    /// `connection` is one of the application's to the same database, with a transaction begun on it. Workers notice
    /// the commit within milliseconds in this process and by their polling in others; [`PostgresStore::wake_workers`]
    /// after the commit is quicker.
    ///
    /// # Errors
    /// `Invalid`: no transaction is begun. `Schema`: the inbox's tables are not in that database. `Busy`: in a
    /// transaction that is isolated more than READ COMMITTED, another one accepted the same key meanwhile; PostgreSQL
    /// then wants the whole transaction to be run again.
    pub async fn append_in(
        &self,
        connection: &mut PgConnection,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        AppendGroup::check_all(&groups)?;
        self.lanes_of(APPEND_IN, &groups).await?;
        let persistent = self.shared.pinned.keeps_statements();
        // Fails outside of a transaction, where nothing could be taken back.
        connection.execute(sqlx::raw_sql("SAVEPOINT mailslot")).await.during(APPEND_IN)?;
        let appended = if accept::takes(&groups) {
            match self.append_plain_in(connection, groups.clone(), persistent).await {
                Err(error) if is_missing_partition(&error) => {
                    connection.execute(sqlx::raw_sql(TAKE_BACK)).await.during(APPEND_IN)?;
                    keeper::provide_all(&self.shared).await?;
                    self.append_plain_in(connection, groups, persistent).await?
                }
                appended => appended?,
            }
        } else {
            let mut link = SqlxLink { db: connection, persistent };
            self.append_over(&mut link, &groups).await?
        };
        connection.execute(sqlx::raw_sql("RELEASE SAVEPOINT mailslot")).await.during(APPEND_IN)?;
        self.shared.wakeup.expect();
        Ok(appended)
    }

    /// Wakes the workers of all processes: for callers that have just committed a transaction in which they accepted.
    pub fn wake_workers(&self) {
        self.wake();
    }

    async fn append_plain_in(
        &self,
        connection: &mut PgConnection,
        groups: Vec<AppendGroup>,
        persistent: bool,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        let wanted = groups.iter().flat_map(|group| &group.messages).map(NewMessage::lane);
        let mut link = SqlxLink { db: connection, persistent };
        // No remembered lanes: the database may be another one by mistake, and what is new here may be rolled back.
        let lanes = lanes::number(&mut self.session(&mut link), wanted, &LaneCache::default()).await?;
        let statement = (self.shared.statements.get(queries::MESSAGE_ACCEPT).clone(), persistent);
        let accepted = accept::accept(connection, statement, &groups, &lanes, self.micros()).await?;
        let (known, answers) = accept::open_groups(groups, accepted.answers);
        let mut link = SqlxLink { db: connection, persistent };
        let found = if known.is_empty() { Vec::new() } else { self.append_over(&mut link, &known).await? };
        Ok(accept::join(answers, found))
    }

    fn session<'s>(&'s self, link: &'s mut dyn Link) -> Session<'s> {
        self.shared.session(link, APPEND_IN)
    }

    /// Appends over any driver's connection, in which the savepoint `mailslot` was set.
    pub(crate) async fn append_over(
        &self,
        link: &mut dyn Link,
        groups: &[AppendGroup],
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        let back = SqlStr::from_static(TAKE_BACK);
        for _ in 0..RACES_MAX {
            let cache = LaneCache::default();
            let tried = append::append(&mut self.session(link), groups, &cache, self.time()).await;
            let is_missing_partition = match tried {
                Ok(Some(appended)) => return Ok(appended.answers),
                Ok(None) => false,
                Err(error) if is_missing_partition(&error) => true,
                Err(error) => return Err(error),
            };
            link.execute(APPEND_IN, &back, vec![]).await?;
            if is_missing_partition {
                keeper::provide_all(&self.shared).await?;
            }
        }
        Err(moves::overtaken(APPEND_IN))
    }
}

/// So that an inbox on this store has `accept_in`.
#[async_trait]
impl AppendIn<PgConnection> for PostgresStore {
    async fn append_in(
        &self,
        connection: &mut PgConnection,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        PostgresStore::append_in(self, connection, groups).await
    }
}

/// The handler's transaction: an extractor. What the handler writes through it commits together with the message's
/// completion, so for these writes the handler takes effect once. With any other verdict, and when the lease is lost, it
/// is rolled back.
///
/// It takes a connection for as long as the handler runs, so give the store as many as such handlers run at once
/// ([`PostgresOptions::connections`](crate::PostgresOptions::connections)). Accept follow-up messages by
/// [`PostgresStore::append_in`] on it.
///
/// Register the store itself as state: `.state(store.clone())`.
#[derive(Debug)]
pub struct PostgresTx {
    slot: OwnedMutexGuard<Option<Lent>>,
}

impl Deref for PostgresTx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.slot.as_ref().expect("the transaction is taken only after its handle is gone")
    }
}

impl DerefMut for PostgresTx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.slot.as_mut().expect("the transaction is taken only after its handle is gone")
    }
}

impl FromMessageParts for PostgresTx {
    async fn from_message_parts(context: &Context) -> Result<Self, HandlerError> {
        let store = context.extension::<PostgresStore>();
        let store =
            store.ok_or_else(|| HandlerError::permanent("no `PostgresStore` is registered as state"))?;
        let lent = store.shared.handlers.begin("begin_handler").await.map_err(HandlerError::retryable)?;
        let slot = Arc::new(Mutex::new(Some(lent)));
        let guard = Arc::clone(&slot).try_lock_owned().expect("nobody else knows the slot yet");
        context.enlist(Arc::new(Enlisted { store, slot }))?;
        Ok(Self { slot: guard })
    }

    fn check(extensions: &Extensions) -> Result<(), FieldError> {
        if extensions.contains::<PostgresStore>() {
            return Ok(());
        }
        let problem = "has no `PostgresStore`, which a handler needs for its `PostgresTx`";
        let fix = "add `.state(store.clone())` with the inbox's store to the builder";
        Err(FieldError::new("state", problem, fix))
    }
}

#[derive(Debug)]
struct Enlisted {
    store: PostgresStore,
    slot: Arc<Mutex<Option<Lent>>>,
}

impl Enlisted {
    fn take(&self, operation: &'static str) -> Result<Lent, StoreError> {
        let mut slot = self.slot.try_lock().map_err(|_| {
            let detail =
                "the handler returned and its `PostgresTx` is still held; do not move it into a task";
            StoreError::new(StoreErrorKind::Invalid, operation, detail)
        })?;
        slot.take().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Invalid, operation, "the handler's transaction is over already")
        })
    }
}

#[async_trait]
impl EnlistedTransaction for Enlisted {
    async fn settle_and_commit(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        const OPERATION: &str = "settle_and_commit";
        let mut lent = self.take(OPERATION)?;
        self.store
            .within(OPERATION, async {
                let (lease, seq) = (settlement.lease.generation, settlement.seq.0);
                let settled = {
                    let mut link = lent.link();
                    settle_in(&self.store, &mut self.store.shared.session(&mut link, OPERATION), settlement)
                        .await?
                };
                if settled == Settled::LeaseLost {
                    self.store.shared.leases.forget(lease);
                    lent.roll_back().await?;
                    return Ok(settled);
                }
                lent.finish().await?;
                self.store.shared.leases.settled(lease, [seq]);
                // The handler may have accepted others in it.
                self.store.wake();
                Ok(settled)
            })
            .await
    }

    async fn record_and_commit(&self, identity: Option<&DeliveryIdentity>) -> Result<Concluded, StoreError> {
        const OPERATION: &str = "record_and_commit";
        let mut lent = self.take(OPERATION)?;
        let record = async {
            let concluded = match identity {
                Some(identity) => {
                    let mut link = lent.link();
                    let mut session = self.store.shared.session(&mut link, OPERATION);
                    record_once(&mut session, identity, self.store.time()).await?
                }
                None => Concluded::Recorded,
            };
            if concluded != Concluded::Recorded {
                lent.roll_back().await?;
                return Ok(concluded);
            }
            lent.finish().await?;
            // The handler may have accepted others in it.
            self.store.wake();
            Ok(concluded)
        };
        self.store.within(OPERATION, record).await
    }

    async fn roll_back(&self) -> Result<(), StoreError> {
        self.take("roll_back")?.roll_back().await
    }
}

/// Settles in the handler's transaction. The lease's row is locked until it commits, so nobody can take the message back
/// in between.
async fn settle_in(
    store: &PostgresStore,
    session: &mut Session<'_>,
    settlement: Settlement,
) -> Result<Settled, StoreError> {
    let [statement, idle] = bounds_millis(&store.shared.options).map(|millis| millis.to_string());
    let params = vec![store.time(), Param::text(&statement), Param::text(&idle)];
    let now = instant(session.row(queries::CLOCK_BEGIN_SETTLING, params).await?.int(0));
    let mut moves = Moves::at(now);
    let (settled, mut promoted) = settle::settle(session, vec![settlement], &mut moves).await?;
    promoted.extend(moves::finish(session, &mut moves, &Settling::default()).await?);
    store.lower(&promoted);
    Ok(settled.first().copied().unwrap_or(Settled::LeaseLost))
}
