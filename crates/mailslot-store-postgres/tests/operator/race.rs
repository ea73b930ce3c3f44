//! Operators, maintenance and workers at once, each as fast as it can: nothing fails, nothing is lost, and every invariant
//! holds afterwards.

use crate::support::{Place, accept, claim, order, settlement};
use mailslot_core::store::{
    Change, Exchange, Filter, HandoffResult, PageRequest, RedriveSpec, RetentionPolicy,
};
use mailslot_core::{
    Disposition, Handoff, InboxStore as _, KeyPolicy, OperatorStore as _, Random as _, Reason, SeededRandom,
    Status,
};
use mailslot_store_postgres::PostgresStore;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BATCHES: usize = 60;

const BATCH: usize = 25;

fn pick<T: Copy>(random: &SeededRandom, of: &[T]) -> T {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a small place"
    )]
    let place = (random.unit() * of.len() as f64) as usize;
    of[place.min(of.len() - 1)]
}

async fn accept_all(store: &PostgresStore, random: &SeededRandom) {
    let sessions = ["a", "b", "c", "d"];
    for batch in 0..BATCHES {
        let messages = (0..BATCH).map(|n| {
            let message = match pick(random, &[0, 1, 2]) {
                0 => order(),
                1 => order().session(pick(random, &sessions)),
                _ => order().key(&format!("{}", n % 7)).policy(KeyPolicy::UntilFinished).return_first(),
            };
            message.payload(format!("{batch} {n}"))
        });
        accept(store, messages).await;
    }
}

fn verdict(random: &SeededRandom) -> Disposition {
    match pick(random, &[0, 0, 0, 1, 2, 3, 4, 5]) {
        0 => Disposition::Complete,
        1 => Disposition::Retry { after: Duration::ZERO, reason: Reason::Failed },
        2 => Disposition::DeadLetter { reason: Reason::Permanent },
        3 => Disposition::Suspend(Handoff::new("elsewhere").expect("it can be had")),
        4 => Disposition::Skip { reason: Reason::Vetoed },
        _ => Disposition::Release,
    }
}

async fn work(store: &PostgresStore, random: &SeededRandom, done: &AtomicBool) {
    let mut settlements = Vec::new();
    while !done.load(Ordering::SeqCst) {
        let lease = Some(claim(40));
        let leased = store.exchange(Exchange { settlements, lease }).await.expect("it can be had").leased;
        settlements = leased.iter().map(|one| settlement(one, verdict(random))).collect();
        tokio::task::yield_now().await;
    }
    store.exchange(Exchange { settlements, lease: None }).await.expect("it can be had");
}

async fn operate(store: &PostgresStore, random: &SeededRandom, done: &AtomicBool) {
    let changes = [Change::Cancel, Change::Requeue, Change::Requeue, Change::Skip, Change::Purge];
    while !done.load(Ordering::SeqCst) {
        let statuses =
            pick(random, &[None, Some(Status::Parked), Some(Status::Leased), Some(Status::Pending)]);
        let filter = Filter { statuses: statuses.map(|status| vec![status]), ..Filter::default() };
        store
            .change(pick(random, &changes), &filter, pick(random, &[1, 5, 20]))
            .await
            .expect("it can be had");
        settle_a_handoff(store, random).await;
    }
}

async fn settle_a_handoff(store: &PostgresStore, random: &SeededRandom) {
    let suspended = Filter { statuses: Some(vec![Status::Suspended]), ..Filter::default() };
    let page = store.query(&suspended, &PageRequest::default()).await.expect("it can be had");
    for record in page.items {
        assert_eq!((record.status, record.handoff.is_some()), (Status::Suspended, true));
        let failed = HandoffResult::Failed(mailslot_core::ErrorText::new("no"));
        let result = if pick(random, &[true, false]) { HandoffResult::Completed } else { failed };
        store.settle_handoff(record.envelope.id, result).await.expect("it can be had");
    }
}

async fn keep_house(store: &PostgresStore, done: &AtomicBool) {
    let none = Some(Duration::from_millis(500));
    let policy = RetentionPolicy { completed: none, skipped: none, cancelled: none, dead_lettered: none };
    while !done.load(Ordering::SeqCst) {
        store
            .create_redrive(RedriveSpec { filter: Filter::default(), rate: 1_000 })
            .await
            .expect("it can be had");
        store.step_redrives().await.expect("it can be had");
        store.retain(None, &policy, 50).await.expect("it can be had");
        store.recover(10).await.expect("it can be had");
        // In the middle of all this each of its statements sees one sound state.
        assert_eq!(store.check().await.expect("it can be had"), []);
        store.counts().await.expect("it can be had");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_and_workers_do_not_break_what_the_others_do() {
    let place = Place::new();
    // Two processes.
    let (one, other) = (place.open_with_servers_clock().await, place.open_with_servers_clock().await);
    let seeds: Vec<_> = (1..=6).map(SeededRandom::new).collect();
    let done = AtomicBool::new(false);
    let accepting = async {
        tokio::join!(accept_all(&one, &seeds[0]), accept_all(&other, &seeds[1]));
        done.store(true, Ordering::SeqCst);
    };
    tokio::join!(
        accepting,
        work(&one, &seeds[2], &done),
        work(&other, &seeds[3], &done),
        operate(&one, &seeds[4], &done),
        operate(&other, &seeds[5], &done),
        keep_house(&one, &done),
    );
    assert_eq!(one.check().await.expect("it can be had"), []);
    assert_eq!(other.repair().await.expect("it can be had"), []);
    drain(&one).await;
    assert_eq!(one.check().await.expect("it can be had"), []);
    let left = one.counts().await.expect("it can be had");
    assert!(left.iter().all(|count| count.status.is_terminal()), "{left:?}");
}

/// Ends everything that is left, as an operator and a worker would.
async fn drain(store: &PostgresStore) {
    loop {
        let leased = store
            .exchange(Exchange { settlements: vec![], lease: Some(claim(1_000)) })
            .await
            .expect("it can be had")
            .leased;
        let settlements = leased.iter().map(|one| settlement(one, Disposition::Complete)).collect();
        store.exchange(Exchange { settlements, lease: None }).await.expect("it can be had");
        let skipped = store.change(Change::Skip, &Filter::default(), 1_000).await.expect("it can be had");
        let cancelled = store.change(Change::Cancel, &Filter::default(), 1_000).await.expect("it can be had");
        if leased.is_empty() && skipped.changed == 0 && cancelled.changed == 0 {
            return;
        }
    }
}
