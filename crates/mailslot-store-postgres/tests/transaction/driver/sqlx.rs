//! sqlx.

use super::{Driver, End, Step, Taken, accept, append, elsewhere};
use crate::bench::{Bench, order};
use async_trait::async_trait;
use mailslot_engine::AcceptError;
use sqlx::{AssertSqlSafe, Connection as _};

pub(crate) struct Sqlx;

#[async_trait]
impl Driver for Sqlx {
    const NAME: &'static str = "sqlx";

    async fn transact(bench: &Bench, steps: Vec<Step>, end: End) -> Vec<Taken> {
        let mut db = bench.connect().await;
        let mut tx = db.begin().await.unwrap();
        let mut taken = Vec::new();
        for step in steps {
            taken.push(match step {
                Step::Run(statement) => {
                    Taken::Ran(sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *tx).await.is_ok())
                }
                Step::Elsewhere(number) => elsewhere(bench, number).await,
                Step::Accept(one) => accept(bench, &mut *tx, one).await,
                Step::Append(groups) => append(bench, &mut *tx, groups).await,
            });
        }
        let ended = if end == End::Commit { tx.commit().await } else { tx.rollback().await };
        ended.unwrap();
        taken
    }

    async fn outside(bench: &Bench) -> Option<AcceptError> {
        let mut db = bench.connect().await;
        bench.inbox.accept_in(&mut db, &order(1)).await.err()
    }
}
