//! SeaORM.

use super::{Driver, End, Step, Taken, accept, append, elsewhere};
use crate::bench::{Bench, order};
use async_trait::async_trait;
use mailslot_engine::AcceptError;
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database, TransactionTrait as _};

pub(crate) struct SeaOrm;

#[async_trait]
impl Driver for SeaOrm {
    const NAME: &'static str = "sea-orm";

    async fn transact(bench: &Bench, steps: Vec<Step>, end: End) -> Vec<Taken> {
        let db = Database::connect(&bench.url).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let mut taken = Vec::new();
        for step in steps {
            taken.push(match step {
                Step::Run(statement) => Taken::Ran(tx.execute_unprepared(&statement).await.is_ok()),
                Step::Elsewhere(number) => elsewhere(bench, number).await,
                Step::Accept(one) => accept(bench, &mut tx, one).await,
                // By a reference, as the closures of `transaction` have one.
                Step::Append(groups) => append(bench, &mut &tx, groups).await,
            });
        }
        let ended = if end == End::Commit { tx.commit().await } else { tx.rollback().await };
        ended.unwrap();
        taken
    }

    async fn outside(_: &Bench) -> Option<AcceptError> {
        None
    }
}

/// An application may use both on one pool. Each keeps prepared statements on the connection, by their text, and they bind
/// other types.
pub(crate) async fn one_connection_serves_sea_orm_and_sqlx(b: &Bench) {
    let db = Database::connect(ConnectOptions::new(&b.url).max_connections(1).to_owned()).await.unwrap();
    for number in 0..2 {
        let mut by_sqlx = db.get_postgres_connection_pool().begin().await.unwrap();
        b.inbox.accept_in(&mut *by_sqlx, &order(number)).session("s").await.unwrap();
        by_sqlx.commit().await.unwrap();
        let mut by_sea_orm = db.begin().await.unwrap();
        b.inbox.accept_in(&mut by_sea_orm, &order(number)).session("s").await.unwrap();
        by_sea_orm.commit().await.unwrap();
    }
    assert_eq!(b.records().await.len(), 4);
    b.is_sound().await;
}
