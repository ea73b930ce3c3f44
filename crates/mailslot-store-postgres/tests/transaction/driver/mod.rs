//! What the cases need of a driver, and the drivers.

mod diesel;
mod sea_orm;
mod sqlx;
mod tokio_postgres;

pub(crate) use diesel::Diesel;
pub(crate) use sea_orm::{SeaOrm, one_connection_serves_sea_orm_and_sqlx};
pub(crate) use sqlx::Sqlx;
pub(crate) use tokio_postgres::TokioPostgres;

use crate::bench::{Bench, order};
use async_trait::async_trait;
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{AppendIn, Receipt, StoreError};
use mailslot_engine::AcceptError;
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::engine::Order;

/// A driver in whose transactions an application accepts.
#[async_trait]
pub(crate) trait Driver: Send + Sync + 'static {
    /// Its name in the output.
    const NAME: &'static str;

    /// Takes steps in one transaction, in order, and ends it.
    async fn transact(bench: &Bench, steps: Vec<Step>, end: End) -> Vec<Taken>;

    /// Accepts on a connection that is in no transaction. `None`: the driver's types do not let it.
    async fn outside(bench: &Bench) -> Option<AcceptError>;
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    RollBack,
}

/// What is done in a transaction.
pub(crate) enum Step {
    /// Any statement of the application's.
    Run(String),
    /// By the inbox.
    Accept(Accept),
    /// By the store: many at once.
    Append(Vec<AppendGroup>),
    /// By the inbox, and not in this transaction.
    Elsewhere(u32),
}

/// An order, and how it is accepted.
#[derive(Clone, Default)]
pub(crate) struct Accept {
    number: u32,
    key: Option<&'static str>,
    session: Option<&'static str>,
    strict: bool,
}

impl Accept {
    pub(crate) fn of(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    pub(crate) fn key(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }

    pub(crate) fn session(self, session: &'static str) -> Self {
        Self { session: Some(session), ..self }
    }

    pub(crate) fn strict(self) -> Self {
        Self { strict: true, ..self }
    }
}

impl From<Accept> for Step {
    fn from(accept: Accept) -> Self {
        Self::Accept(accept)
    }
}

/// What a step came to.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Whether the server took the statement.
    Ran(bool),
    Accepted(Result<Receipt, AcceptError>),
    Appended(Result<Vec<Vec<Appended>>, StoreError>),
}

impl Taken {
    #[track_caller]
    pub(crate) fn ran(&self) -> bool {
        let Self::Ran(ran) = self else { panic!("it was an accept: {self:?}") };
        *ran
    }

    #[track_caller]
    pub(crate) fn receipt(&self) -> &Receipt {
        let Self::Accepted(Ok(receipt)) = self else { panic!("it was not accepted: {self:?}") };
        receipt
    }

    #[track_caller]
    pub(crate) fn refusal(&self) -> &AcceptError {
        let Self::Accepted(Err(error)) = self else { panic!("it was not refused: {self:?}") };
        error
    }
}

/// Accepts in a transaction.
async fn accept<C>(bench: &Bench, connection: &mut C, accept: Accept) -> Taken
where
    C: Send + ?Sized,
    PostgresStore: AppendIn<C>,
{
    let order: Order = order(accept.number);
    let mut request = bench.inbox.accept_in(connection, &order);
    if let Some(key) = accept.key {
        request = request.idempotency_key(key);
    }
    if let Some(session) = accept.session {
        request = request.session(session);
    }
    Taken::Accepted(if accept.strict { request.strict().await } else { request.await })
}

/// Accepts beside the transaction.
async fn elsewhere(bench: &Bench, number: u32) -> Taken {
    Taken::Accepted(bench.inbox.accept(&order(number)).await)
}

/// Appends in a transaction.
async fn append<C>(bench: &Bench, connection: &mut C, groups: Vec<AppendGroup>) -> Taken
where
    C: Send + ?Sized,
    PostgresStore: AppendIn<C>,
{
    Taken::Appended(AppendIn::append_in(&bench.store, connection, groups).await)
}
