//! Paced redrives, advanced by the workers.

use super::bench::{Bench, Worker, fine, start};
use super::script::{Run, Runs, scripted};
use mailslot_core::Verdict;
use mailslot_core::store::{Filter, Redrive, RedriveAction, RedriveSpec, RedriveState};

cases![
    a_worker_requeues_dead_letters_at_the_rate_of_a_redrive,
    a_paused_redrive_waits_and_a_cancelled_one_ends,
];

/// A worker beside ten dead letters.
async fn ten_dead_letters(b: &Bench) -> (Worker, Runs) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler).concurrency(16));
    for number in 0..10 {
        worker.order(number).await;
    }
    runs.take(10).await.into_iter().for_each(|run| run.end(Verdict::dead_letter("broken")));
    worker.until(|stats| stats.dead_lettered == 10).await;
    (worker, runs)
}

async fn begin(worker: &Worker, rate: u32) -> Redrive {
    fine(worker.operator().redrive(RedriveSpec { filter: Filter::default(), rate }).await)
}

async fn a_worker_requeues_dead_letters_at_the_rate_of_a_redrive(b: &Bench) {
    let (worker, mut runs) = ten_dead_letters(b).await;
    assert_eq!(begin(&worker, 4).await.total, 10);
    for (seconds, moved) in [(0, 4), (1, 4), (1, 2)] {
        b.advance(seconds);
        runs.take(moved).await.into_iter().for_each(Run::complete);
        worker.drain().await;
        assert!(runs.is_empty(), "no more than the rate allows");
    }
    assert_eq!(worker.until(|stats| stats.completed == 10).await.dead_lettered, 10);
    worker.stop().await;
    let redrive = fine(b.store.redrives().await).pop().expect("there is one");
    assert_eq!(redrive.requeued, 10);
}

async fn a_paused_redrive_waits_and_a_cancelled_one_ends(b: &Bench) {
    let (worker, mut runs) = ten_dead_letters(b).await;
    let id = begin(&worker, 4).await.id;
    runs.take(4).await.into_iter().for_each(Run::complete);
    let act =
        async |action| fine(worker.operator().act_on_redrive(id, action).await).expect("it is known").state;
    assert_eq!(act(RedriveAction::Pause).await, RedriveState::Paused);
    b.advance(10);
    worker.drain().await;
    assert!(runs.is_empty());
    assert_eq!(act(RedriveAction::Resume).await, RedriveState::Running);
    b.advance(1);
    runs.take(4).await.into_iter().for_each(Run::complete);
    assert_eq!(act(RedriveAction::Cancel).await, RedriveState::Cancelled);
    b.advance(1);
    worker.drain().await;
    assert!(runs.is_empty());
    worker.stop().await;
}
