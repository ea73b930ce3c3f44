//! Transactions of callers that stay open: who wants what they hold waits and is told, and nobody else.

use crate::rig::{LEASE, connect, eventually, kind_of, options, order, server, soon};
use mailslot_core::{AcceptOutcome, MessageId, OperatorStore as _, State, Status, StoreErrorKind};
use mailslot_engine::{AcceptError, Inbox, MaintenanceConfig, WorkerConfig};
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::engine::Order;
use mailslot_testkit::servers::PostgresServer;
use sqlx::{Connection as _, PgConnection};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// Longer than a test may take: what waits for as long is stuck.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

const OTHERS: u32 = 100;

async fn open() -> (PostgresServer, PostgresStore) {
    let server = server(&[]).await;
    let store = PostgresStore::open(options(&server.url()).call_timeout(CALL_TIMEOUT)).await.unwrap();
    (server, store)
}

/// What accepts and holders want.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Key,
    Session,
}

async fn accept(inbox: &Inbox<PostgresStore>, wanted: Wanted) -> Result<AcceptOutcome, AcceptError> {
    let message = order(0);
    let accept = inbox.accept(&message);
    let receipt = match wanted {
        Wanted::Key => accept.idempotency_key("held").await,
        Wanted::Session => accept.session("held").await,
    };
    receipt.map(|receipt| receipt.outcome)
}

async fn hold(inbox: &Inbox<PostgresStore>, db: &mut PgConnection, wanted: Wanted) {
    let accept = inbox.accept_in(db, &order(0));
    let receipt = match wanted {
        Wanted::Key => accept.idempotency_key("held").await,
        Wanted::Session => accept.session("held").await,
    };
    assert!(receipt.unwrap().is_new());
}

#[track_caller]
fn assert_told(answer: &Result<AcceptOutcome, AcceptError>) {
    let error = answer.as_ref().unwrap_err();
    assert_eq!(kind_of(error), StoreErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("try again when it has ended"), "{error}");
}

/// Lets some want what is held, together with others who do not, and then what comes later.
async fn want(inbox: &Inbox<PostgresStore>, wanted: Wanted) {
    let (mut waiting, mut others) = (JoinSet::new(), JoinSet::new());
    for number in 1..=OTHERS {
        if number % 20 == 0 {
            let inbox = inbox.clone();
            waiting.spawn(async move { accept(&inbox, wanted).await });
        }
        let inbox = inbox.clone();
        others.spawn(async move { inbox.accept(&order(number)).await.map(|_| ()) });
    }
    let others = soon("the others are accepted", others.join_all()).await;
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    let later = soon("a later one is accepted", async { inbox.accept(&order(0)).await }).await;
    assert!(later.unwrap().is_new());
    for answer in soon("those who wait are told", waiting.join_all()).await {
        assert_told(&answer);
    }
}

async fn held_and_let_go(wanted: Wanted) {
    let (server, store) = open().await;
    let inbox = Inbox::builder(store).contract::<Order>().build().unwrap();
    let mut db = connect(&server.url()).await;

    let mut tx = db.begin().await.unwrap();
    hold(&inbox, &mut tx, wanted).await;
    want(&inbox, wanted).await;
    // By now the store knows that somebody is in the way.
    want(&inbox, wanted).await;
    tx.rollback().await.unwrap();
    // It was accepted by nobody.
    assert_eq!(accept(&inbox, wanted).await.unwrap(), AcceptOutcome::Accepted);

    let mut tx = db.begin().await.unwrap();
    let message = order(0);
    match wanted {
        Wanted::Key => inbox.accept_in(&mut *tx, &message).idempotency_key("another").await.unwrap(),
        Wanted::Session => inbox.accept_in(&mut *tx, &message).session("held").await.unwrap(),
    };
    let waiting = tokio::spawn({
        let inbox = inbox.clone();
        async move {
            let accept = inbox.accept(&message);
            match wanted {
                Wanted::Key => accept.idempotency_key("another").await,
                Wanted::Session => accept.session("held").await,
            }
        }
    });
    until_somebody_waits(&server).await;
    tx.commit().await.unwrap();
    let receipt = soon("who waits is accepted", waiting).await.unwrap().unwrap();
    assert_eq!(receipt.is_new(), matches!(wanted, Wanted::Session));
    assert_eq!(inbox.store().check().await.unwrap(), []);
}

async fn until_somebody_waits(server: &PostgresServer) {
    let mut admin = connect(&server.url()).await;
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    eventually("somebody waits for the caller", async || {
        sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut admin).await.unwrap() > 0
    })
    .await;
}

#[tokio::test]
async fn accepts_that_wait_for_a_key_hold_up_no_others_and_are_told() {
    held_and_let_go(Wanted::Key).await;
}

#[tokio::test]
async fn accepts_that_wait_for_a_session_hold_up_no_others_and_are_told() {
    held_and_let_go(Wanted::Session).await;
}

/// What the handlers of a test see of it.
#[derive(Debug, Clone)]
struct Scene {
    handled: watch::Sender<BTreeMap<u32, u32>>,
    may_end: watch::Sender<bool>,
}

async fn handle(order: Order, State(scene): State<Scene>) {
    scene.handled.send_modify(|handled| *handled.entry(order.number).or_default() += 1);
    scene.may_end.subscribe().wait_for(|may_end| *may_end).await.unwrap();
}

async fn status(store: &PostgresStore, id: MessageId) -> Status {
    store.get(id).await.unwrap()[0].record.status
}

/// The verdict on a session's head waits for the caller who puts a message behind it, and has the lock of its lease
/// meanwhile: of one in which others are, and which every heartbeat wants.
#[tokio::test]
async fn a_verdict_that_waits_for_a_session_holds_up_no_others_and_no_heartbeat() {
    const TOGETHER: u32 = 10;
    const ALL: u32 = 40;
    let (server, store) = open().await;
    let scene = Scene { handled: watch::Sender::default(), may_end: watch::Sender::new(false) };
    let inbox = Inbox::builder(store.clone())
        .state(scene.clone())
        .handler(handle)
        .worker(WorkerConfig { lease: LEASE, heartbeat: LEASE / 4, ..WorkerConfig::default() })
        .maintenance(MaintenanceConfig { recover_every: LEASE / 20, ..MaintenanceConfig::default() })
        .build()
        .unwrap();
    let head = inbox.accept(&order(0)).session("s").await.unwrap();
    for number in 1..TOGETHER {
        inbox.accept(&order(number)).await.unwrap();
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let working = inbox.clone();
    let working = tokio::spawn(async move { working.run(async { drop(stopped.await) }).await.unwrap() });
    let mut handled = scene.handled.subscribe();
    soon("they are handled", handled.wait_for(|handled| handled.len() == TOGETHER as usize)).await.unwrap();

    let mut db = connect(&server.url()).await;
    let mut tx = db.begin().await.unwrap();
    inbox.accept_in(&mut *tx, &order(ALL)).session("s").await.unwrap();
    scene.may_end.send_replace(true);
    let mut stats = inbox.watch();
    for number in TOGETHER..ALL {
        inbox.accept(&order(number)).await.unwrap();
        let done = stats.wait_for(|stats| stats.completed >= u64::from(number));
        soon(&format!("all but the head of {number} are completed"), done).await.unwrap();
    }
    // Twice as long as a lease.
    let beats = stats.borrow().heartbeats + 8;
    soon("the heart beats", stats.wait_for(|stats| stats.heartbeats >= beats)).await.unwrap();
    let seen = inbox.stats();
    assert_eq!(
        (seen.completed, seen.heartbeats_failed, seen.recovered, seen.lease_lost),
        (39, 0, 0, 0),
        "{seen:?}"
    );
    assert_eq!(status(&store, head.id).await, Status::Leased);
    assert_eq!(store.leases(10).await.unwrap().len(), 1);

    tx.commit().await.unwrap();
    let done = stats.wait_for(|stats| stats.completed == u64::from(ALL) + 1);
    soon("the head is completed, and who waited behind it", done).await.unwrap();
    assert!(scene.handled.borrow().values().all(|times| *times == 1), "{:?}", scene.handled.borrow());
    assert_eq!(scene.handled.borrow().len(), ALL as usize + 1);
    assert_eq!(status(&store, head.id).await, Status::Completed);
    drop(stop);
    soon("the worker stops", working).await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
}
