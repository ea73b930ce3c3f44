//! Transactions that get into each other's way: PostgreSQL ends one of them, and whoever ran it can run it again.

use crate::rig::{connect, eventually, options, server};
use mailslot_core::store::{AppendGroup, Appended, Exchange, LaneRequest, LeaseRequest};
use mailslot_core::{EndpointName, InboxStore as _, OperatorStore as _, Owner, StoreError, StoreErrorKind};
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::message::{MessageBuilder, message};
use mailslot_testkit::servers::PostgresServer;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Transaction};
use std::time::Duration;
use tokio::task::JoinSet;

const CALLERS: usize = 6;
const ROUNDS: usize = 15;

async fn start() -> (PostgresServer, PostgresStore) {
    start_with("deadlock_timeout = '20ms'").await
}

async fn start_with(setting: &str) -> (PostgresServer, PostgresStore) {
    let server = server(&[setting]).await;
    // Long enough for callers that wait for each other's transactions on a busy machine.
    let options = options(&server.url()).call_timeout(Duration::from_secs(20));
    let store = PostgresStore::open(options).await.unwrap();
    (server, store)
}

fn group(messages: impl IntoIterator<Item = MessageBuilder>) -> AppendGroup {
    AppendGroup { messages: messages.into_iter().map(MessageBuilder::build).collect() }
}

fn keyed(key: &str) -> MessageBuilder {
    message("order").key(key)
}

fn new_ones(answers: &[Vec<Appended>]) -> usize {
    let receipts = answers.iter().flatten().map(|answer| answer.receipt().expect("it was stored"));
    receipts.filter(|receipt| receipt.is_new()).count()
}

/// An effect and an accept in one transaction of the caller's; the accept is new if this says so.
async fn transact(
    store: &PostgresStore,
    db: &mut PgConnection,
    isolation: &str,
    key: &str,
) -> Result<bool, StoreError> {
    let mut tx = db.begin().await.unwrap();
    let isolate = format!("SET TRANSACTION ISOLATION LEVEL {isolation}");
    sqlx::raw_sql(AssertSqlSafe(isolate)).execute(&mut *tx).await.unwrap();
    // Takes the transaction's snapshot, before the others commit.
    sqlx::query("SELECT count(*) FROM effect").execute(&mut *tx).await.unwrap();
    let answers = store.append_in(&mut tx, vec![group([keyed(key)])]).await?;
    let is_new = new_ones(&answers) == 1;
    let committed = async {
        if is_new {
            sqlx::query("INSERT INTO effect VALUES ($1)").bind(key).execute(&mut *tx).await?;
        }
        tx.commit().await
    };
    match committed.await {
        Ok(()) => Ok(is_new),
        // The caller's own statements may meet the same, and mean the same.
        Err(error) => {
            let code = error.as_database_error().and_then(|error| error.code().map(|code| code.to_string()));
            assert!(matches!(code.as_deref(), Some("40001" | "40P01")), "{error}");
            Err(StoreError::new(StoreErrorKind::Busy, "commit", "the caller's own"))
        }
    }
}

async fn race(isolation: &'static str) -> usize {
    let (server, store) = start().await;
    let mut db = connect(&server.url()).await;
    sqlx::raw_sql("CREATE TABLE effect (key text NOT NULL)").execute(&mut db).await.unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (store, mut db) = (store.clone(), connect(&server.url()).await);
        callers.spawn(async move {
            let mut lost = 0;
            for round in 0..ROUNDS {
                let key = format!("key:{round}");
                while let Err(error) = transact(&store, &mut db, isolation, &key).await {
                    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
                    lost += 1;
                }
            }
            lost
        });
    }
    let lost = callers.join_all().await.into_iter().sum();
    let effects: Vec<String> = sqlx::query_scalar("SELECT key FROM effect").fetch_all(&mut db).await.unwrap();
    let messages: u64 = store.counts().await.unwrap().iter().map(|count| count.messages).sum();
    assert_eq!((effects.len(), messages), (ROUNDS, ROUNDS as u64));
    assert_eq!(store.check().await.unwrap(), []);
    lost
}

#[tokio::test]
async fn callers_in_read_committed_need_no_second_try() {
    assert_eq!(race("READ COMMITTED").await, 0);
}

#[tokio::test]
async fn callers_in_repeatable_read_are_told_to_run_it_again() {
    assert!(race("REPEATABLE READ").await > 0, "they were in each other's way");
}

#[tokio::test]
async fn callers_in_serializable_are_told_to_run_it_again() {
    assert!(race("SERIALIZABLE").await > 0, "they were in each other's way");
}

/// Ten messages whose keys and sessions others have too; in reverse for every second caller.
fn batch(round: usize, reverse: bool, make: fn(&str) -> MessageBuilder) -> Vec<MessageBuilder> {
    let mut messages: Vec<_> = (0..10).map(|index| make(&format!("{round}:{index}"))).collect();
    if reverse {
        messages.reverse();
    }
    messages
}

async fn append_crosswise(
    make: fn(&str) -> MessageBuilder,
    groups: fn(Vec<MessageBuilder>) -> Vec<AppendGroup>,
    wanted: usize,
) {
    let (_server, store) = start().await;
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let store = store.clone();
        callers.spawn(async move {
            let mut new = 0;
            for round in 0..ROUNDS {
                new += new_ones(&store.append(groups(batch(round, caller % 2 == 0, make))).await.unwrap());
            }
            new
        });
    }
    let new: usize = callers.join_all().await.into_iter().sum();
    assert_eq!(new, wanted);
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn accepts_with_the_same_keys_in_opposite_order_never_wait_for_each_other() {
    append_crosswise(keyed, |batch| batch.into_iter().map(|one| group([one])).collect(), ROUNDS * 10).await;
}

#[tokio::test]
async fn batches_with_the_same_keys_in_opposite_order_never_wait_for_each_other() {
    append_crosswise(keyed, |batch| vec![group(batch)], ROUNDS * 10).await;
}

#[tokio::test]
async fn batches_in_the_same_sessions_in_opposite_order_never_wait_for_each_other() {
    append_crosswise(|name| message("order").session(name), |batch| vec![group(batch)], 4 * ROUNDS * 10)
        .await;
}

/// Accepts and commits; whoever is ended gives the other one way.
async fn go_on(
    store: &PostgresStore,
    mut tx: Transaction<'_, Postgres>,
    key: &str,
) -> Result<(), StoreError> {
    match store.append_in(&mut tx, vec![group([keyed(key)])]).await {
        Ok(_) => {
            tx.commit().await.unwrap();
            Ok(())
        }
        Err(error) => {
            tx.rollback().await.unwrap();
            Err(error)
        }
    }
}

#[tokio::test]
async fn callers_that_lock_keys_in_opposite_order_are_told_which_one_to_run_again() {
    let (server, store) = start().await;
    let (mut first, mut second) = (connect(&server.url()).await, connect(&server.url()).await);
    let (mut first, mut second) = (first.begin().await.unwrap(), second.begin().await.unwrap());
    store.append_in(&mut first, vec![group([keyed("a")])]).await.unwrap();
    store.append_in(&mut second, vec![group([keyed("b")])]).await.unwrap();
    let (one, other) = tokio::join!(go_on(&store, first, "b"), go_on(&store, second, "a"));
    let errors: Vec<_> = [one, other].into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].kind(), StoreErrorKind::Busy);
    assert!(errors[0].to_string().contains("run it again"), "{}", errors[0]);
}

#[tokio::test]
async fn the_first_accept_of_a_contract_in_a_transaction_that_stays_open_holds_up_nobody() {
    let (server, store) = start().await;
    let mut db = connect(&server.url()).await;
    let mut tx = db.begin().await.unwrap();
    store.append_in(&mut tx, vec![group([message("order")])]).await.unwrap();
    for _ in 0..2 {
        store.append(vec![group([message("order")])]).await.unwrap();
    }
    let claimed = store.exchange(claim("order")).await.unwrap();
    assert_eq!(claimed.leased.len(), 2);
    tx.commit().await.unwrap();
    assert_eq!(store.exchange(claim("order")).await.unwrap().leased.len(), 1);
}

fn claim(contract: &str) -> Exchange {
    let lane = LaneRequest {
        endpoint: EndpointName::default(),
        contract: contract.parse().unwrap(),
        attempts_max: 5,
    };
    let lease = LeaseRequest {
        owner: Owner::new("test").unwrap(),
        lanes: vec![lane],
        limit: 10,
        duration: Duration::from_secs(60),
        tenant: None,
        due_until: None,
    };
    Exchange { settlements: Vec::new(), lease: Some(lease) }
}

/// Callers share one statement for their accepts; none of them may hear of a deadlock with somebody else.
#[tokio::test]
async fn an_accept_that_postgresql_ends_for_a_callers_transaction_is_run_again_by_the_store() {
    // The accept looks for a deadlock a second after it began to wait; until then the caller waits, too.
    let (server, store) = start_with("deadlock_timeout = '1s'").await;
    // Keys are inserted in the order of their hashes. In one of these two the accept then holds what the caller wants.
    for (first, second) in [("a", "b"), ("b", "a")] {
        let key = |name: &str| keyed(&format!("{name} after {first}"));
        let mut db = connect(&server.url()).await;
        let mut tx = db.begin().await.unwrap();
        sqlx::raw_sql("SET LOCAL deadlock_timeout = '1h'").execute(&mut *tx).await.unwrap();
        store.append_in(&mut tx, vec![group([key(second)])]).await.unwrap();
        let groups = [first, second].map(|name| group([key(name)]));
        let (accepted, ()) = tokio::join!(store.append(groups.into()), async {
            until_somebody_waits(&server).await;
            store.append_in(&mut tx, vec![group([key(first)])]).await.unwrap();
            tx.commit().await.unwrap();
        });
        assert_eq!(accepted.unwrap().len(), 2);
    }
    assert_eq!(store.check().await.unwrap(), []);
    let log = std::fs::read_to_string(server.log()).unwrap();
    assert!(log.contains("deadlock detected"), "neither order led to one");
}

async fn until_somebody_waits(server: &PostgresServer) {
    let mut admin = connect(&server.url()).await;
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    eventually("the accept waits for the caller", async || {
        sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut admin).await.unwrap() > 0
    })
    .await;
}
