//! tokio-postgres.

use super::{Driver, End, Step, Taken, accept, append, elsewhere};
use crate::bench::{Bench, order};
use async_trait::async_trait;
use mailslot_engine::AcceptError;
use tokio_postgres::{Client, NoTls};

pub(crate) struct TokioPostgres;

async fn connect(bench: &Bench) -> Client {
    let (client, connection) = tokio_postgres::connect(&bench.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[async_trait]
impl Driver for TokioPostgres {
    const NAME: &'static str = "tokio-postgres";

    async fn transact(bench: &Bench, steps: Vec<Step>, end: End) -> Vec<Taken> {
        let mut client = connect(bench).await;
        let mut tx = client.transaction().await.unwrap();
        let mut taken = Vec::new();
        for step in steps {
            taken.push(match step {
                Step::Run(statement) => Taken::Ran(tx.batch_execute(&statement).await.is_ok()),
                Step::Elsewhere(number) => elsewhere(bench, number).await,
                Step::Accept(one) => accept(bench, &mut tx, one).await,
                Step::Append(groups) => append(bench, &mut tx, groups).await,
            });
        }
        let ended = if end == End::Commit { tx.commit().await } else { tx.rollback().await };
        ended.unwrap();
        taken
    }

    async fn outside(bench: &Bench) -> Option<AcceptError> {
        let mut client = connect(bench).await;
        // Begun by hand it is a transaction; ended, it is none.
        client.batch_execute("BEGIN").await.unwrap();
        bench.inbox.accept_in(&mut client, &order(1)).await.unwrap();
        client.batch_execute("ROLLBACK").await.unwrap();
        bench.inbox.accept_in(&mut client, &order(1)).await.err()
    }
}
