//! Diesel, by diesel-async.

use super::{Driver, End, Step, Taken, accept, append, elsewhere};
use crate::bench::{Bench, order};
use async_trait::async_trait;
use diesel_async::{
    AnsiTransactionManager, AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _,
    TransactionManager as _,
};
use mailslot_engine::AcceptError;

pub(crate) struct Diesel;

async fn connect(bench: &Bench) -> AsyncPgConnection {
    AsyncPgConnection::establish(&bench.url).await.unwrap()
}

#[async_trait]
impl Driver for Diesel {
    const NAME: &'static str = "diesel-async";

    async fn transact(bench: &Bench, steps: Vec<Step>, end: End) -> Vec<Taken> {
        let mut db = connect(bench).await;
        AnsiTransactionManager::begin_transaction(&mut db).await.unwrap();
        let mut taken = Vec::new();
        for step in steps {
            taken.push(match step {
                Step::Run(statement) => Taken::Ran(db.batch_execute(&statement).await.is_ok()),
                Step::Elsewhere(number) => elsewhere(bench, number).await,
                Step::Accept(one) => accept(bench, &mut db, one).await,
                Step::Append(groups) => append(bench, &mut db, groups).await,
            });
        }
        let ended = match end {
            End::Commit => AnsiTransactionManager::commit_transaction(&mut db).await,
            End::RollBack => AnsiTransactionManager::rollback_transaction(&mut db).await,
        };
        ended.unwrap();
        taken
    }

    async fn outside(bench: &Bench) -> Option<AcceptError> {
        let mut db = connect(bench).await;
        bench.inbox.accept_in(&mut db, &order(1)).await.err()
    }
}
